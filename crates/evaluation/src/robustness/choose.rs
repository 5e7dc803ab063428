//! The choice of a scale and of operating points that hold: over the left-out folds and all perturbations together, on
//! scores that mean odds.

use std::collections::BTreeMap;

use mitosis::matching::{Fold, calibrate};
use mitosis::{Microns, OperatingPoint};
use stats::platt::{Platt, ece};

use super::RobustnessError;
use super::fold::{FoldRun, TISSUE_RATE};
use super::point::{Chosen, LeftOut, NamedPoint, Reached, Thresholds, Tissue, UnderChange};
use super::result::score;
use super::weighted_counts::{Counts, Foreign, Items, OnScale, Prepared, pooled};
use crate::too_few::TooFew;

/// What a point is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Balanced,
    Sensitive,
    Specific,
}

impl Aim {
    const ALL: [Self; 3] = [Self::Balanced, Self::Sensitive, Self::Specific];

    fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Sensitive => "sensitive",
            Self::Specific => "specific",
        }
    }

    /// How many times recall weighs as much as precision.
    fn beta(self) -> f64 {
        match self {
            Self::Balanced => 1.0,
            Self::Sensitive => 2.0,
            Self::Specific => 0.5,
        }
    }
}

/// Fits the scale and chooses the three points over all folds and perturbations together.
///
/// With a `density`, figures per mm2, every fold counts as one mm2 of tissue with so many figures: its recall, and its
/// false ones per mm2, whatever it holds. So images that were cut around figures, which hold hundreds per mm2,
/// are comparable with whole frames, and a score of 0.5 means even odds in tissue of that density.
///
/// A scale that is `given`, that of another detector with the same second stage, stays as it is: so both can hold one
/// file. Its calibration error is then that of the given scale.
///
/// # Errors
/// Folds under different perturbations, without figures, or too few candidates to fit a scale to.
pub fn choose(
    folds: &[FoldRun],
    density: Option<f64>,
    given: Option<Platt>,
) -> Result<Chosen, RobustnessError> {
    let names = changes(folds)?;
    // One stage alone is not scaled: its threshold is on the network's score.
    let two_stages = folds.iter().any(FoldRun::has_second_stage);
    let scale = if two_stages { given } else { Some(Platt::IDENTITY) };
    if scale.is_none() {
        enough(folds)?;
    }
    let on_scale = OnScale::all(folds)?;
    let all: Vec<&OnScale<'_>> = on_scale.iter().collect();
    let platt = fit(&all, density, scale)?;
    let prepared: Vec<Prepared<'_>> = all.iter().map(|f| Prepared::new(f, &platt)).collect();

    let (mut points, mut changes) = (BTreeMap::new(), vec![]);
    for aim in Aim::ALL {
        let point = best(&prepared, aim, density)?;
        let (each, reached) = reached_by(&prepared, &point, &names, density)?;
        if aim == Aim::Balanced {
            let all = each.iter().zip(&names);
            changes = all.map(|(counts, name)| UnderChange::new(counts, name)).collect();
        }
        points.insert(aim.name().to_owned(), named(&point, reached));
    }
    // The paper's own rule pools counts, so it is not used where they are weighted.
    if density.is_none()
        && let Some(point) = best_clean(&prepared)
    {
        let (_, reached) = reached_by(&prepared, &point, &names, density)?;
        points.insert("clean".into(), named(&point, reached));
    }
    let Across { left_out, scores } = across(&on_scale, density, scale, &names)?;

    let items = Items::gather(&all, density);
    let raw: Vec<f64> = items.raw.iter().map(|z| Platt::IDENTITY.score(&[*z])).collect();
    // Without a density every candidate counts alike.
    let weight = if density.is_some() { items.weight } else { vec![1.0; items.figure.len()] };
    Ok(Chosen {
        slope: platt.slope,
        offset: platt.offset,
        tissue: tissue(&on_scale),
        scale_given: given.is_some(),
        ece_before: ece(&raw, &items.figure, &weight, 10),
        ece_after: ece(&scores, &items.figure, &weight, 10),
        auc_clean: auc_clean(&on_scale),
        folds: folds.iter().map(|f| f.name.clone()).collect(),
        density,
        left_out,
        perturbations: names,
        changes,
        points,
    })
}

/// Names of the changes that every fold was measured under.
fn changes(folds: &[FoldRun]) -> Result<Vec<String>, RobustnessError> {
    let names = |f: &FoldRun| f.labelled.rows.iter().map(|r| r.perturbation.clone()).collect();
    let nothing = |what: &str| RobustnessError::Nothing(what.into());
    let first: Vec<String> = folds.first().map(names).ok_or_else(|| nothing("no folds"))?;
    if folds.iter().any(|f| names(f) != first) {
        return Err(nothing("the folds were measured under different perturbations"));
    }
    Ok(first)
}

/// The scale of the second stage's logits over folds, or what was `given`.
fn fit(
    folds: &[&OnScale<'_>],
    density: Option<f64>,
    given: Option<Platt>,
) -> Result<Platt, RobustnessError> {
    if let Some(given) = given {
        return Ok(given);
    }
    let Items { logits, figure, weight, .. } = Items::gather(folds, density);
    Platt::fit(&logits, &figure, &weight).map_err(|e| RobustnessError::Nothing(e.to_string()))
}

/// Counts under every change over all folds, and what they come to.
fn reached_by(
    folds: &[Prepared<'_>],
    point: &OperatingPoint,
    names: &[String],
    density: Option<f64>,
) -> Result<(Vec<Counts>, Reached), RobustnessError> {
    let each = pooled(&counted(folds, std::slice::from_ref(point), density)?.remove(0));
    let foreign = folds.iter().filter_map(|f| f.foreign(point)).reduce(Foreign::with);
    let reached = reached(&each, names, foreign);
    Ok((each, reached))
}

/// The paper's own rule: the largest pooled F1 on the images as they are.
fn best_clean(folds: &[Prepared<'_>]) -> Option<OperatingPoint> {
    let clean = folds.iter().map(|f| Fold { name: f.fold.name.clone(), cases: f.cases[0].clone() });
    let clean: Vec<Fold> = clean.collect();
    let set = &folds.first()?.fold.labelled;
    Some(calibrate(&clean, Microns(set.radius_um), set.rule).ok()?.point)
}

/// Each fold by the scale and the balanced point of the others.
struct Across {
    left_out: LeftOut,
    /// Of every candidate under every change, as [`Items`] has them.
    scores: Vec<f64>,
}

fn across(
    folds: &[OnScale<'_>],
    density: Option<f64>,
    given: Option<Platt>,
    names: &[String],
) -> Result<Across, RobustnessError> {
    let (mut scores, mut points) = (vec![], BTreeMap::new());
    let (mut each, mut foreign) = (vec![], vec![]);
    for (i, fold) in folds.iter().enumerate() {
        let others = folds.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, f)| f);
        let mut others: Vec<&OnScale<'_>> = others.collect();
        if others.is_empty() {
            others.push(fold);
        }
        let platt = fit(&others, density, given)?;
        scores.extend(Items::gather(&[fold], density).logits.iter().map(|z| platt.score(z)));
        let others: Vec<Prepared<'_>> = others.iter().map(|f| Prepared::new(f, &platt)).collect();
        let point = best(&others, Aim::Balanced, density)?;
        let here = Prepared::new(fold, &platt);
        each.push(here.counts(std::slice::from_ref(&point), density)?.remove(0));
        foreign.extend(here.foreign(&point));
        points.insert(fold.fold.name.clone(), Thresholds::from(&point));
    }
    let foreign = foreign.into_iter().reduce(Foreign::with);
    let reached = reached(&pooled(&each), names, foreign);
    Ok(Across { left_out: LeftOut { folds: points, reached }, scores })
}

/// The tissue that set the scale of every fold.
fn tissue(folds: &[OnScale<'_>]) -> Option<Tissue> {
    let first = folds.first()?.fold.tissue.as_ref()?;
    Some(Tissue {
        per_mm2: TISSUE_RATE,
        mm2: first.mm2,
        images: first.images(),
        logits: folds.iter().map(|f| (f.fold.name.clone(), f.shift)).collect(),
    })
}

/// ROC-AUC of the last stage over the candidates of the images as they are.
fn auc_clean(folds: &[OnScale<'_>]) -> f64 {
    let (mut scores, mut figure) = (vec![], vec![]);
    for OnScale { fold, shift } in folds {
        for l in &fold.labelled.rows[0].images {
            scores.extend(l.found.iter().map(|f| FoldRun::raw(f) - shift));
            figure.extend(l.near_figures(fold.labelled.radius_um));
        }
    }
    stats::metrics::roc_auc(&scores, &figure).ok().flatten().unwrap_or(f64::NAN)
}

/// Refuses to fit a scale to fewer candidates of the unchanged images than `calibrate` takes.
fn enough(folds: &[FoldRun]) -> Result<(), TooFew> {
    let mut kinds = [0, 0];
    for set in folds.iter().map(|f| &f.labelled) {
        for l in set.rows.iter().take(1).flat_map(|r| &r.images) {
            l.near_figures(set.radius_um).iter().for_each(|&f| kinds[usize::from(f)] += 1);
        }
    }
    let [others, figures] = kinds;
    TooFew::check(figures, others)
}

/// The pairs that are compared. Above 0.7 few figures are left to the second stage, and none above 0.9: a pair there
/// would fit one first stage and no other.
fn grid() -> Vec<OperatingPoint> {
    let seg = (1..=7).map(|i| 0.1 * i as f32);
    seg.flat_map(|s| (1..50).map(move |c| at(s, c as f32 / 50.0))).collect()
}

/// Mean F1 within this of the best is as good: the standard error of an F1 of 0.6 over 600 figures. Of such pairs the
/// balanced point is the one that accepts least where no figure is known.
const LEVEL: f64 = 0.02;

fn best(
    folds: &[Prepared<'_>],
    aim: Aim,
    density: Option<f64>,
) -> Result<OperatingPoint, RobustnessError> {
    let points = grid();
    let each = counted(folds, &points, density)?;
    let value = |each: &Vec<Vec<Counts>>| mean(pooled(each).iter().map(|t| t.f_beta(aim.beta())));
    let values: Vec<f64> = each.iter().map(value).collect();
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let measured = folds.iter().any(|f| f.fold.foreign.is_some());
    let level = if measured && aim == Aim::Balanced { best - LEVEL } else { best };
    let elsewhere = |p: &OperatingPoint| -> usize {
        folds.iter().filter_map(|f| f.foreign(p)).map(|f| f.accepted).sum()
    };
    let level = points.into_iter().zip(&values).filter(|(_, v)| **v >= level);
    let level = level.map(|(p, v)| (elsewhere(&p), -v, p));
    // Of pairs that accept as little the one with the best F1; of equal ones the later, stricter one.
    let least = level.rev().min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    least
        .map(|(_, _, point)| point)
        .ok_or_else(|| RobustnessError::Nothing("no pairs to compare".into()))
}

/// For every point, every fold's counts under every perturbation.
fn counted(
    folds: &[Prepared<'_>],
    points: &[OperatingPoint],
    density: Option<f64>,
) -> Result<Vec<Vec<Vec<Counts>>>, RobustnessError> {
    let mut at = vec![Vec::with_capacity(folds.len()); points.len()];
    for fold in folds {
        let own = fold.counts(points, density)?;
        at.iter_mut().zip(own).for_each(|(all, own)| all.push(own));
    }
    Ok(at)
}

fn reached(tallies: &[Counts], names: &[String], foreign: Option<Foreign>) -> Reached {
    let f1 = |t: &Counts| t.f_beta(1.0);
    let worst = (0..tallies.len())
        .min_by(|&a, &b| f1(&tallies[a]).total_cmp(&f1(&tallies[b])))
        .unwrap_or(0);
    Reached {
        precision: mean(tallies.iter().filter_map(Counts::precision)),
        recall: mean(tallies.iter().filter_map(Counts::recall)),
        f1_clean: f1(&tallies[0]),
        f1_mean: mean(tallies.iter().map(f1)),
        f1_worst: f1(&tallies[worst]),
        worst: names[worst].clone(),
        foreign_per_mm2: foreign.map(|f| f.accepted as f64 / f.mm2),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

fn named(point: &OperatingPoint, reached: Reached) -> NamedPoint {
    let Thresholds { seg, cls } = point.into();
    NamedPoint { seg, cls, reached }
}

fn at(seg: f32, cls: f32) -> OperatingPoint {
    OperatingPoint { seg: score(seg), cls: score(cls), provenance: String::new() }
}

#[cfg(test)]
mod tests {
    use super::super::{Looked, Robustness, Row, SCHEMA, ScoredCandidate};
    use super::*;
    use mitosis::matching::{Rule, Tally};

    /// Ten figures and thirty others whose scores overlap a little; `shift` moves the logits.
    fn measured(shift: f64) -> Robustness {
        let s = |z: f64| (1.0 / (1.0 + (-(z + shift)).exp())) as f32;
        let found = |i: usize| {
            let (figure, k) = (i < 10, i % 10);
            let z = if figure { k as f64 / 3.0 - 0.5 } else { -2.5 + k as f64 / 4.0 };
            ScoredCandidate { x_um: 100.0 * i as f64, y_um: 0.0, s_seg: 0.9, s_cls: Some(s(z)) }
        };
        let image = Looked {
            image: "a".into(),
            truth: (0..10).map(|i| (100.0 * f64::from(i), 1.0)).collect(),
            found: (0..40).map(found).collect(),
        };
        let row = |name: &str| Row {
            perturbation: name.into(),
            tally: Tally::default(),
            f1: None,
            precision: None,
            recall: None,
            auc: None,
            false_per_mm2: 0.0,
            images: vec![image.clone()],
        };
        Robustness {
            schema: SCHEMA.into(),
            model: "m".into(),
            operating_point: at(0.1, 0.5),
            radius_um: 7.5,
            rule: Rule::Midog,
            mm2: 1.0,
            figures: 10,
            rows: vec![row("clean"), row("jpeg-50")],
            mean_f1: None,
            worst: None,
        }
    }

    fn fold(name: &str, shift: f64) -> FoldRun {
        let foreign = Some(measured(shift));
        FoldRun { name: name.into(), labelled: measured(shift), foreign, tissue: None }
    }

    #[test]
    fn the_points_are_ordered_and_the_scale_undoes_a_shift() {
        let chosen = choose(&[fold("A", -2.0), fold("B", -2.0)], None, None).unwrap();
        assert!(chosen.offset > 0.5, "{chosen:?}");
        assert!(chosen.ece_after < chosen.ece_before, "{chosen:?}");
        let p = &chosen.points;
        let reached = |name: &str| &p[name].reached;
        assert!(reached("sensitive").recall >= reached("balanced").recall);
        assert!(reached("specific").precision >= reached("balanced").precision);
        assert!(reached("balanced").f1_mean > 0.75, "{p:?}");
        assert!(reached("clean").f1_clean >= reached("balanced").f1_clean - 1e-9, "{p:?}");
        let changes: Vec<&str> = chosen.changes.iter().map(|c| c.perturbation.as_str()).collect();
        assert_eq!(changes, ["clean", "jpeg-50"]);
        assert_eq!(chosen.changes[0].f1, reached("balanced").f1_clean);
        assert!(chosen.to_string().contains("jpeg-50"), "{chosen}");
        assert_eq!(chosen.left_out.reached.foreign_per_mm2.map(|v| v > 0.0), Some(true));
    }

    #[test]
    fn at_a_density_the_size_of_a_fold_does_not_matter() {
        // The same fold three times over, and ten times the area with as many false ones per mm2.
        let many = |n: usize| {
            let mut f = fold("B", -1.0);
            f.labelled.mm2 *= n as f64;
            f.labelled.figures *= n;
            for row in &mut f.labelled.rows {
                row.images = (0..n).flat_map(|_| row.images.clone()).collect();
            }
            f
        };
        let a = || fold("A", 0.5);
        let one = choose(&[a(), many(1)], Some(15.0), None).unwrap();
        let three = choose(&[a(), many(3)], Some(15.0), None).unwrap();
        assert!((one.offset - three.offset).abs() < 1e-3, "{one:?} {three:?}");
        let f1 = |c: &Chosen| c.points["balanced"].reached.f1_mean;
        assert!((f1(&one) - f1(&three)).abs() < 1e-9);
        assert!((one.ece_after - three.ece_after).abs() < 1e-3);
        // And figures that are rarer make the same score less sure.
        // The scale of another detector stays, and only thresholds are chosen.
        let scale = Some(Platt { slope: 2.0, offset: 0.5 });
        let given = choose(&[a(), many(1)], Some(15.0), scale).unwrap();
        assert_eq!((given.slope, given.offset, given.scale_given), (2.0, 0.5, true));
        assert_ne!((given.slope, one.scale_given), (one.slope, true));
        let rare = choose(&[a(), many(1)], Some(1.0), None).unwrap();
        assert!(rare.offset < one.offset - 1.0, "{rare:?}");
        assert!(
            !one.points.contains_key("clean") && one.points["balanced"].reached.worst == "clean"
        );
    }

    #[test]
    fn of_points_as_good_the_one_that_accepts_least_elsewhere() {
        let folds = [fold("A", 0.0), fold("B", 0.3)];
        let with = choose(&folds, None, None).unwrap();
        let blind: Vec<FoldRun> =
            folds.into_iter().map(|f| FoldRun { foreign: None, ..f }).collect();
        let without = choose(&blind, None, None).unwrap();
        let (chosen, best) = (&with.points["balanced"], &without.points["balanced"]);
        let (low, high) = (chosen.reached.f1_mean, best.reached.f1_mean);
        assert!(high - LEVEL <= low, "{chosen:?} {best:?}");
        assert!(low <= high && best.reached.foreign_per_mm2.is_none());
        // What the best pair accepts there, counted by hand: the stricter one accepts less.
        let accepted = |p: &NamedPoint| {
            let runs = [measured(0.0), measured(0.3)];
            let all = runs.iter().flat_map(|r| &r.rows[0].images[0].found);
            let logit = |s: f64| (s / (1.0 - s)).ln();
            let scaled =
                |f: &ScoredCandidate| with.scale().score(&[logit(f64::from(f.s_cls.unwrap()))]);
            all.filter(|f| scaled(f) as f32 >= p.cls).count()
        };
        assert_eq!(chosen.reached.foreign_per_mm2, Some(accepted(chosen) as f64 / 2.0));
        assert!(accepted(chosen) <= accepted(best), "{chosen:?} {best:?}");
    }

    /// Tissue of one mm2 with thirty candidates, as a model whose logits are moved by `shift` rates them.
    fn tissue(shift: f64) -> Robustness {
        let mut r = measured(shift);
        for row in &mut r.rows {
            row.images[0].found.retain(|f| f.x_um >= 1000.0);
            row.images[0].truth.clear();
        }
        r
    }

    #[test]
    fn tissue_brings_models_to_one_scale() {
        let with =
            |name: &str, shift: f64| FoldRun { tissue: Some(tissue(shift)), ..fold(name, shift) };
        let apart = [with("A", -1.5), with("B", 1.5)];
        let chosen = choose(&apart, None, None).unwrap();
        let same = choose(&[with("A", 0.0), with("B", 0.0)], None, None).unwrap();
        // As if both had been one model.
        assert!((chosen.offset - same.offset).abs() < 1e-2, "{chosen:?} {same:?}");
        let left_out = |c: &Chosen| c.left_out.reached.f1_mean;
        assert!((left_out(&chosen) - left_out(&same)).abs() < 1e-9);
        let alone = choose(&[fold("A", -1.5), fold("B", 1.5)], None, None).unwrap();
        assert!(left_out(&alone) < left_out(&chosen) - 0.05, "{alone:?}");
        // A third model gets the offset that its own tissue asks for: the same score for the same nucleus.
        let z = 0.7;
        let of =
            |shift: f64| chosen.calibrated_scale(Some(&tissue(shift))).unwrap().score(&[z + shift]);
        assert!((of(0.0) - of(2.0)).abs() < 1e-3);
        // By hand: three candidates each at 10 values from -2.5 in steps of a quarter; the twentieth has -1.75.
        let logit = tissue(0.0).tissue_logit().unwrap();
        assert!((logit + 1.75).abs() < 1e-3, "{logit}");
        let t = chosen.tissue.as_ref().unwrap();
        assert_eq!((t.per_mm2, t.mm2, t.images.len()), (20.0, 1.0, 1));
        assert!((t.logits["B"] - t.logits["A"] - 3.0).abs() < 1e-3, "{t:?}");
        // No scale is guessed.
        let e = |r: Result<Platt, RobustnessError>| r.unwrap_err().to_string();
        assert!(e(chosen.calibrated_scale(None)).contains("a scale that tissue sets"));
        assert!(e(alone.calibrated_scale(Some(&tissue(0.0)))).contains("without tissue"));
        let mut other = tissue(0.0);
        other.rows[0].images[0].image = "b".into();
        assert!(e(chosen.calibrated_scale(Some(&other))).contains("other names"));
        let mut few = tissue(0.0);
        few.rows[0].images[0].found.truncate(5);
        assert!(e(chosen.calibrated_scale(Some(&few))).contains("5 candidates on 1.00 mm2"));
        let e = choose(&[with("A", 0.0), fold("B", 0.0)], None, None).unwrap_err().to_string();
        assert!(e.contains("the fold B was not measured"), "{e}");
    }

    #[test]
    fn each_fold_has_the_thresholds_that_the_others_chose_and_older_files_are_read() {
        // Alone, each fold would choose another pair: the scores of the one are far below those of the other.
        let folds = [fold("A", -2.0), fold("B", 2.0)];
        let scale = Some(Platt::IDENTITY);
        let chosen = choose(&folds, None, scale).unwrap();
        let own = &chosen.left_out.folds;
        for (name, other) in [("A", fold("B", 2.0)), ("B", fold("A", -2.0))] {
            let by_the_other = choose(&[other], None, scale).unwrap().points["balanced"].clone();
            let expected = Thresholds { seg: by_the_other.seg, cls: by_the_other.cls };
            assert_eq!(own[name], expected, "{name}: {own:?}");
        }
        assert_ne!(own["A"], own["B"]);
        let printed = chosen.to_string();
        for (name, Thresholds { seg, cls }) in own {
            assert!(
                printed.contains(&format!("  {name:<18} seg {seg:.2} cls {cls:.2}\n")),
                "{printed}"
            );
        }
        // An earlier version wrote the pair of the first fold in their place.
        let mut json = serde_json::to_value(&chosen).unwrap();
        let left_out = json["left_out"].as_object_mut().unwrap();
        left_out.remove("folds");
        left_out.insert("seg".into(), 0.5.into());
        left_out.insert("cls".into(), 0.25.into());
        let older: Chosen = serde_json::from_value(json).unwrap();
        assert_eq!(
            (&older.left_out.reached, older.left_out.folds.len()),
            (&chosen.left_out.reached, 0)
        );
        let (_, results) = chosen.for_card(&Platt::IDENTITY).unwrap();
        let card = results["left_out_slides"].as_table().unwrap();
        assert!(
            card["f1_mean"].as_float().is_some() && card["folds"]["A"]["cls"].as_float().is_some()
        );
    }

    #[test]
    fn no_scale_is_fitted_to_fewer_candidates_than_calibrate_takes() {
        let mut few = fold("A", 0.0);
        for row in &mut few.labelled.rows {
            row.images[0].found.retain(|f| f.x_um < 300.0 || (1000.0..1300.0).contains(&f.x_um));
        }
        let refused = choose(std::slice::from_ref(&few), None, None).unwrap_err();
        let words = "3 figures and 3 other candidates";
        assert!(refused.to_string().contains(words), "{refused}");
        // A scale that was given is not fitted, and one stage has none.
        assert!(choose(std::slice::from_ref(&few), None, Some(Platt::IDENTITY)).is_ok());
        let found = few.labelled.rows.iter_mut().flat_map(|r| &mut r.images[0].found);
        found.for_each(|f| f.s_cls = None);
        assert!(choose(&[few], None, None).is_ok());
    }

    #[test]
    fn folds_under_different_changes_are_refused() {
        let mut other = fold("B", 0.0);
        other.labelled.rows.pop();
        let e = choose(&[fold("A", 0.0), other], None, None).unwrap_err().to_string();
        assert!(e.contains("different perturbations"), "{e}");
    }
}
