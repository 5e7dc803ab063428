//! Which pictures a study has, and the data behind each.

use super::plot::{
    BoxGroup, CalibrationGroup, Picture, PlottedCurve, Row, Scale, boxes, calibration, forest,
    kaplan_meier,
};
use crate::cohort::{DENSITY, HOTSPOT};
use crate::error::Result;
use crate::frame::sort_levels;
use crate::numbers::plain_p;
use crate::study::{ComparedResult, FEATURES, Joined, Model, Study, StudyPlan, Tested, model};
use base::text::Many;
use stats::survival::km::{IntervalType, KaplanMeierOptions, kaplan_meier as fit_km};
use std::collections::BTreeMap;

/// Draws them all.
pub fn draw(plan: &StudyPlan, main: &Joined, study: &Study) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for f in &study.features {
        let Some(logrank) = &f.logrank else { continue };
        let split = &logrank.split;
        let mut curves = Vec::new();
        for (g, name) in logrank.groups.iter().enumerate() {
            let rows: Vec<usize> =
                (0..split.group.len()).filter(|&i| split.group[i] == g).collect();
            if rows.is_empty() {
                continue;
            }
            let options = KaplanMeierOptions {
                interval: IntervalType::LogLog,
                ..KaplanMeierOptions::default()
            };
            let km = fit_km(&split.survival.select(&rows)?, &options)?;
            curves.push(PlottedCurve { name: name.clone(), km });
        }
        let test = match &logrank.all {
            Tested::Done { p, .. } => format!("Log-rank p\u{a0}=\u{a0}{}", plain_p(*p)),
            Tested::Failed { failed } => format!("No log-rank test: {failed}"),
        };
        let title = format!("Survival by {}", f.label.to_lowercase());
        let time = format!("Time ({})", plan.time_unit);
        pictures.push(Picture {
            name: format!("km_{}", f.feature),
            caption: format!(
                "{title}; cut-point {} ({}); bands: 95 % log-log intervals, marks: censored {}. {test}, \
                 unadjusted.",
                (logrank.cut * 1e4).round() / 1e4,
                logrank.cut_origin,
                f.unit
            ),
            canvas: kaplan_meier(&title, &time, &plan.time_unit, &curves, &test),
        });
    }
    for column in &plan.boxes {
        for (key, label) in FEATURES {
            if let Some(picture) = box_plot(main, column, key, label)? {
                pictures.push(picture);
            }
        }
    }
    pictures.push(forest_plot(study));
    pictures.push(comparison(study, false));
    pictures.push(comparison(study, true));
    pictures.extend(calibration_plot(plan, main));
    Ok(pictures)
}

fn box_plot(main: &Joined, column: &str, key: &str, label: &str) -> Result<Option<Picture>> {
    let slides = &main.slides.table;
    let (j, value) = (slides.column(column)?, slides.column(key)?);
    let by = column.replace(['_', '.'], " ");
    let axis = match key {
        HOTSPOT => "Mitotic figures in the 2 mm\u{b2} hotspot",
        _ => "Mitotic figures per 20 mm\u{b2} of tissue",
    };
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut missing = 0;
    for row in 0..slides.len() {
        match slides.cell(row, j) {
            Some(group) => {
                groups.entry(group.to_owned()).or_default().push(slides.number(row, value)?);
            }
            None => missing += 1,
        }
    }
    if groups.is_empty() {
        return Ok(None);
    }
    let mut names: Vec<String> = groups.keys().cloned().collect();
    sort_levels(&mut names);
    let groups: Vec<BoxGroup> = names
        .into_iter()
        .map(|name| {
            let mut values = groups.remove(&name).unwrap_or_default();
            values.sort_by(f64::total_cmp);
            BoxGroup { name, values }
        })
        .collect();
    let safe: String = column.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let gap = if missing > 0 {
        format!(" {} without it left out.", Many(missing, "slide"))
    } else {
        String::new()
    };
    Ok(Some(Picture {
        name: format!("box_{safe}_{key}"),
        caption: format!(
            "{label} of slides by {by}: quartiles, whiskers to 1.5 interquartile ranges, \
             median (bar) and mean (cross) with their numbers above.{gap}"
        ),
        canvas: boxes(&format!("{label} by {by}"), axis, &by, &groups),
    }))
}

fn model_rows(rows: &mut Vec<Row>, heading: &str, model: &Model, colour: usize) {
    let heading = heading.to_owned();
    rows.push(Row { name: heading, value: None, per: "", note: String::new(), colour });
    for j in 0..model.names.len() {
        let (unit, per) = match model.sd[j] {
            1.0 => (String::new(), ""),
            sd => (format!(" (SD\u{a0}{})", short(sd)), "per\u{a0}SD"),
        };
        let name = match model.names[j].as_str() {
            HOTSPOT => "Hotspot count",
            DENSITY => "Density",
            _ => model.labels[j].as_str(),
        };
        let (value, note) = match model.ratio_per_sd(j) {
            None => (None, "left out".into()),
            Some(_) if !model.fit.settled(j) => (None, "no finite estimate".into()),
            Some((estimate, lower, upper, c)) => (Some((estimate, lower, upper)), plain_p(c.p)),
        };
        rows.push(Row { name: format!("{name}{unit}"), value, per, note, colour });
    }
}

/// Three significant digits, of numbers above 100 the whole ones.
fn short(v: f64) -> String {
    let digits = (2 - v.abs().max(f64::MIN_POSITIVE).log10().floor() as i32).clamp(0, 6);
    format!("{v:.*}", digits as usize)
}

fn forest_plot(study: &Study) -> Picture {
    let mut rows = Vec::new();
    for (i, f) in study.features.iter().enumerate() {
        if let Some(m) = &f.cox {
            model_rows(&mut rows, &format!("{}, alone", f.label), m, i);
        }
        if let Some(a) = &f.adjusted {
            model_rows(&mut rows, &format!("{}, adjusted{}", f.label, f.other_unit()), &a.full, i);
        }
    }
    Picture {
        name: "forest".into(),
        caption: "Hazard ratios of the Cox models, over slides where no other unit is named, with 95 % intervals and Wald \
                  p-values (errors cluster-robust by patient); ratios of numbers are per standard deviation (SD), \
                  given next to the name; ratios of categories are against the reference that the notes name."
            .into(),
        canvas: forest("Hazard ratios", "Hazard ratio (log scale)", "p", Scale::Ratio, &rows),
    }
}

/// C-indices by method: of the fitted risk, or of the count itself as the risk.
fn comparison(study: &Study, raw: bool) -> Picture {
    let mut rows = Vec::new();
    for (i, (key, label)) in FEATURES.iter().enumerate() {
        let name = (*label).into();
        rows.push(Row { name, value: None, per: "", note: String::new(), colour: i });
        for c in study.comparison.iter().filter(|c| c.feature == *key) {
            let found = match (&c.result, raw) {
                (_, true) => c.c_index_count_as_risk.as_ref(),
                (ComparedResult::Found { c_index, .. }, false) => Some(c_index),
                (ComparedResult::Failed { .. }, false) => None,
            };
            let value = found.map(|f| (f.rows.estimate, f.rows.lower, f.rows.upper));
            let missing = if raw { "no C-index" } else { "no model" };
            let note = if value.is_none() { missing.to_owned() } else { c.n.to_string() };
            rows.push(Row { name: c.method.clone(), value, per: "", note, colour: i });
        }
    }
    let (name, title, caption) = if raw {
        (
            "c_index_count",
            "C-index by method, count as the risk",
            "C-index of the count itself as the risk, without a model, slides as units: below 0.5 where higher \
             counts go with longer survival; 95 % percentile intervals from slide resamples.",
        )
    } else {
        (
            "c_index",
            "C-index by method, fitted risk",
            "Apparent C-index of the risk that a Cox model fits to the count alone, slides as units; 95 % \
             percentile intervals from slide resamples with fitted risks held fixed.",
        )
    };
    let several = study.comparison.iter().any(|c| c.method != study.comparison[0].method);
    let of = if several { " Of the slides (n) that all methods have." } else { "" };
    let canvas = forest(title, "C-index", "n", Scale::CIndex, &rows);
    Picture { name: name.into(), caption: format!("{caption}{of}"), canvas }
}

fn calibration_plot(plan: &StudyPlan, main: &Joined) -> Option<Picture> {
    let f = main.slides.adjusted.as_ref().unwrap_or(&main.slides.counts);
    let columns = f.columns_where(|c| c != DENSITY);
    let fitted = model(plan, f, &columns).ok().filter(|m| m.fit.converged())?;
    let mut buffer = Vec::new();
    let data = f.cox(&columns, &mut buffer).ok()?;
    let baseline = fitted.fit.baseline(&data).ok()?.into_iter().next()?;
    let events: Vec<f64> = f
        .survival
        .time()
        .iter()
        .zip(f.survival.event())
        .filter(|(_, e)| **e)
        .map(|(t, _)| *t)
        .collect();
    let horizon = plan.horizon.or_else(|| stats::interval::median(&events).ok())?;
    let lp = &fitted.fit.linear_predictor;
    let count = (events.len() / 5).clamp(2, 4);
    let mut order: Vec<usize> = (0..lp.len()).collect();
    order.sort_by(|&a, &b| lp[a].total_cmp(&lp[b]).then(a.cmp(&b)));
    let (mut groups, mut ended) = (Vec::new(), Vec::new());
    for g in 0..count {
        let rows = &order[g * order.len() / count..(g + 1) * order.len() / count];
        if rows.is_empty() {
            continue;
        }
        let options =
            KaplanMeierOptions { interval: IntervalType::LogLog, ..KaplanMeierOptions::default() };
        let km = fit_km(&f.survival.select(rows).ok()?, &options).ok()?;
        if km.at_risk(horizon) <= 0.0 {
            ended.push(format!("group {} ({}/{})", g + 1, km.events, rows.len()));
            continue;
        }
        let predicted = rows.iter().map(|&i| baseline.survival(horizon, lp[i])).sum::<f64>();
        let point = km.at(horizon);
        groups.push(CalibrationGroup {
            n: rows.len(),
            events: km.events,
            predicted: predicted / rows.len() as f64,
            observed: km.survival_at(horizon),
            lower: point.and_then(|p| p.lower),
            upper: point.and_then(|p| p.upper),
        });
    }
    let at = format!("{horizon:.1} {}", plan.time_unit);
    let ended = match &ended[..] {
        [] => String::new(),
        all => format!(
            " Not shown, since their follow-up ends before: {}, counted from the lowest risk.",
            all.join(", ")
        ),
    };
    let sizes: Vec<String> = groups.iter().map(|g| format!("{}/{}", g.events, g.n)).collect();
    Some(Picture {
        name: "calibration".into(),
        caption: format!(
            "Apparent calibration of the model with the hotspot count{} at {at}: {} groups of \
             equal size by predicted risk (events/slides: {}); bars: 95 % log-log intervals.{ended}",
            if plan.covariates.is_empty() { "" } else { " and the covariates" },
            groups.len(),
            sizes.join(", ")
        ),
        canvas: calibration("Calibration", &at, &groups),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::study::{Counts, study};
    use std::path::Path;

    /// Thirty patients with one slide each; the follow-up of those with the highest counts ends at 5.
    fn studied(plan: StudyPlan) -> (StudyPlan, Study) {
        let mut clinical = String::from("id,months,died,age_group\n");
        let mut counts = String::from("slide,hotspot_count,density_per_20_mm2\n");
        for p in 0..30 {
            let early = p >= 20;
            let (months, died) =
                (if early { 3 + p % 3 } else { 6 + p }, u8::from(early == (p % 5 == 0)));
            clinical += &format!("p{p:02},{months},{died},{}\n", [90, 100, 1010][p % 3]);
            counts += &format!("p{p:02},{p},{p}\n");
        }
        let table =
            |name: &str, text: &str| Table::parse(Path::new(name), text.as_bytes()).unwrap();
        let plan = StudyPlan {
            methods: vec![Counts::new("M", table("counts.csv", &counts))],
            join: ("slide".into(), "id".into()),
            time: "months".into(),
            event: "died".into(),
            replicates: 20,
            ..plan
        };
        let study = study(&table("clinical.csv", &clinical), &plan).unwrap();
        (plan, study)
    }

    #[test]
    fn a_group_whose_follow_up_ends_before_the_horizon_is_not_drawn_but_named() {
        for (horizon, not_shown) in [(4.0, false), (20.0, true)] {
            let plan = StudyPlan { horizon: Some(horizon), ..StudyPlan::default() };
            let (plan, study) = studied(plan);
            let picture = calibration_plot(&plan, &study.joined).unwrap();
            let note = "Not shown, since their follow-up ends before: group";
            assert_eq!(picture.caption.contains(note), not_shown, "{}", picture.caption);
            let drawn = picture.canvas.svg().matches("<circle").count();
            let named = picture.caption.matches("group ").count();
            assert_eq!(drawn + named, 3, "{}", picture.caption);
        }
    }

    #[test]
    fn boxes_of_numbers_are_in_their_order() {
        let (_, study) = studied(StudyPlan::default());
        let picture = box_plot(&study.joined, "age_group", HOTSPOT, "Counts").unwrap().unwrap();
        let svg = picture.canvas.svg();
        let at = ["90", "100", "1010"].map(|name| svg.find(&format!(">{name}<")).unwrap());
        assert!(at.is_sorted(), "{at:?}");
    }
}
