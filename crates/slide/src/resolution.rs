//! From the claims in a file to one resolution, or to a refusal.

use crate::SlideError;
use mitosis::{Mpp, Resolution, ResolutionSource};
use std::path::Path;

/// Largest plausible um/px of a TIFF or image density tag. Printing densities (72 to 600 dpi are
/// 353 to 42 um/px) stay above it, so that a default written by an image library is not a resolution.
pub const MAX_DENSITY_MPP: f64 = 20.0;
/// Two fields whose values differ by more than this share contradict each other.
pub const CONTRADICTION: f64 = 0.05;
/// Horizontal and vertical values that differ by more than this share contradict each other.
pub const ANISOTROPY: f64 = 0.10;

/// One statement in a file about its um/px.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) source: ResolutionSource,
    /// Whether an implausible value means "not set" rather than a damaged file.
    pub(crate) only_if_plausible: bool,
    /// The value as the file has it, for errors about one that is not a number.
    pub(crate) written: Option<String>,
}

/// A number as programs write it: with a point, or with a decimal comma where the scanner's computer
/// was set to one. NaN for anything else.
pub(crate) fn decimal(text: &str) -> f64 {
    let text = text.trim();
    let comma = text.matches(',').count() == 1 && !text.contains('.');
    let parsed = if comma { text.replace(',', ".").parse() } else { text.parse() };
    parsed.unwrap_or(f64::NAN)
}

impl Claim {
    pub(crate) fn vendor(field: &str, x: f64, y: f64) -> Self {
        let source = ResolutionSource::Vendor(field.into());
        Self { x, y, source, only_if_plausible: false, written: None }
    }

    pub(crate) fn image(field: &str, x: f64, y: f64) -> Self {
        let source = ResolutionSource::Image(field.into());
        Self { x, y, source, only_if_plausible: false, written: None }
    }

    /// With the value as the file has it.
    pub(crate) fn written(self, text: &str) -> Self {
        Self { written: Some(text.to_owned()), ..self }
    }

    pub(crate) fn density(field: &str, x: f64, y: f64) -> Self {
        Self { only_if_plausible: true, ..Self::image(field, x, y) }
    }

    fn max(&self) -> f64 {
        match self.source {
            ResolutionSource::Image(_) => MAX_DENSITY_MPP,
            _ => Mpp::MAX,
        }
    }

    fn checked(&self) -> Option<(Mpp, Mpp)> {
        let ok = |v| Mpp::new(v).ok().filter(|m| m.get() <= self.max());
        Some((ok(self.x)?, ok(self.y)?))
    }
}

fn show(c: &Claim) -> String {
    if let (true, Some(text)) = (c.x.is_nan() || c.y.is_nan(), &c.written) {
        let text = base::text::plain(text);
        format!("{} = `{text}`, which is not a number of micrometres", c.source)
    } else if c.x == c.y {
        format!("{} = {} um/px", c.source, c.x)
    } else {
        format!("{} = {} x {} um/px", c.source, c.x, c.y)
    }
}

pub(crate) fn differ(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() > share * a.max(b)
}

/// Why the resolution is unknown; turned into a [`SlideError`] whenever it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    Missing(String),
    Contradicting(String, String),
    Implausible(String),
}

impl Refusal {
    pub(crate) fn error(&self, path: &Path) -> SlideError {
        let path = path.to_path_buf();
        match self.clone() {
            Self::Missing(hint) => SlideError::MissingResolution { path, hint },
            Self::Contradicting(first, second) => {
                SlideError::ContradictingResolution { path, first, second }
            }
            Self::Implausible(found) => SlideError::ImplausibleResolution { path, found },
        }
    }
}

/// Vendor fields first, then image tags. An image tag next to a plausible vendor field counts only
/// when it is plausible itself; two plausible ones must agree.
pub(crate) fn settle(claims: &[Claim], magnification: Option<f64>) -> Result<Resolution, Refusal> {
    let is_vendor = |c: &&Claim| matches!(c.source, ResolutionSource::Vendor(_));
    if let Some(bad) = claims.iter().filter(is_vendor).find(|c| c.checked().is_none()) {
        return Err(Refusal::Implausible(show(bad)));
    }
    let good: Vec<(&Claim, (Mpp, Mpp))> =
        claims.iter().filter_map(|c| Some((c, c.checked()?))).collect();
    let best = good.iter().find(|(c, _)| is_vendor(c)).or_else(|| good.first());
    let Some(&(claim, (x, y))) = best else {
        if let Some(bad) = claims.iter().find(|c| !c.only_if_plausible) {
            return Err(Refusal::Implausible(show(bad)));
        }
        let hint = claims.first().map_or_else(String::new, |c| {
            format!(" ({} is not a microscope's resolution)", show(c))
        });
        return Err(Refusal::Missing(hint));
    };
    if differ(x.get(), y.get(), ANISOTROPY) {
        return Err(Refusal::Contradicting(
            format!("{} (horizontal) = {x}", claim.source),
            format!("{} (vertical) = {y}", claim.source),
        ));
    }
    for (other, (ox, oy)) in &good {
        if differ(x.get(), ox.get(), CONTRADICTION) || differ(y.get(), oy.get(), CONTRADICTION) {
            return Err(Refusal::Contradicting(show(claim), show(other)));
        }
    }
    let step = magnification.filter(|m| m.is_finite() && *m > 0.0);
    if let Some(power) = step.filter(|power| !is_of_power(x.get(), *power)) {
        let nominal = 10.0 / power;
        return Err(Refusal::Contradicting(
            show(claim),
            format!("objective power {power}x (about {nominal} um/px)"),
        ));
    }
    Ok(Resolution { x, y, source: claim.source.clone() })
}

/// The user's um/px next to what the file states: it fills a gap, and of two values that contradict each other it
/// chooses one; it must agree with the plausible value of a file, or with one of several.
pub(crate) fn given(
    mpp: Mpp,
    claims: &[Claim],
    magnification: Option<f64>,
) -> Result<Resolution, Refusal> {
    let user = Resolution::user(mpp);
    let off = |own: Mpp| differ(own.get(), mpp.get(), CONTRADICTION);
    let own = match settle(claims, magnification) {
        Ok(stated) if off(stated.x) || off(stated.y) => {
            format!("{} = {} um/px", stated.source, stated.x.get())
        }
        Err(Refusal::Contradicting(first, second)) => {
            let chosen = |c: &Claim| c.checked().is_some_and(|(x, y)| !off(x) && !off(y));
            // The power is one of the two where the other values agree with each other.
            let by_power = magnification.is_some_and(|m| is_of_power(mpp.get(), m))
                && settle(claims, None).is_ok();
            let one_holds = claims.iter().any(chosen) || by_power;
            if one_holds {
                return Ok(user);
            }
            format!("{first} and {second}")
        }
        _ => return Ok(user),
    };
    Err(Refusal::Contradicting(format!("the given {} um/px", mpp.get()), own))
}

/// Whether a resolution may be that of an objective: 40x is about 0.25 um/px. Scanners stray by some tens of per cent;
/// a whole step of magnification is a contradiction.
fn is_of_power(um: f64, power: f64) -> bool {
    let nominal = 10.0 / power;
    power.is_finite() && power > 0.0 && (um / nominal).max(nominal / um) <= 1.8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_commas_are_read_and_other_words_are_quoted() {
        assert_eq!(decimal(" 0,2500 "), 0.25);
        assert_eq!(decimal("0.25"), 0.25);
        for word in ["1,234.5", "0,2,5", "about 0.25", ""] {
            assert!(decimal(word).is_nan(), "{word}");
        }
        let claim = Claim::vendor("aperio.MPP", f64::NAN, f64::NAN).written("0,2,5");
        let text = settle(&[claim], None).unwrap_err().error(Path::new("a.svs")).to_string();
        assert!(text.contains("`0,2,5`") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn vendor_wins_and_is_named() {
        let r = settle(
            &[
                Claim::image("tiff.XResolution", 0.25, 0.25),
                Claim::vendor("aperio.MPP", 0.2508, 0.2508),
            ],
            None,
        )
        .unwrap();
        assert_eq!(r.x.get(), 0.2508);
        assert_eq!(r.source.to_string(), "aperio.MPP");
    }

    #[test]
    fn the_users_value_fills_a_gap_but_does_not_contradict_in_silence() {
        let of = |v| Mpp::new(v).unwrap();
        let file = [Claim::vendor("aperio.MPP", 0.499, 0.499)];
        assert_eq!(given(of(0.5), &file, None).unwrap().x, of(0.5));
        let refused = |mpp: f64, claims: &[Claim], power: Option<f64>| {
            let Err(Refusal::Contradicting(first, second)) = given(of(mpp), claims, power) else {
                panic!("{mpp}");
            };
            assert!(first.contains(&format!("given {mpp}")), "{first}");
            second
        };
        assert!(refused(0.25, &file, None).contains("aperio.MPP = 0.499"));
        assert_eq!(given(of(0.25), &[], None).unwrap().x, of(0.25));
        // Of two values the given one is one.
        let torn = [Claim::vendor("a", 0.25, 0.25), Claim::vendor("b", 0.5, 0.5)];
        assert_eq!(given(of(0.5), &torn, None).unwrap().x, of(0.5));
        let both = refused(0.35, &torn, Some(40.0));
        assert!(both.contains("a = 0.25") && both.contains("b = 0.5"), "{both}");
        assert_eq!(given(of(0.25), &file, Some(40.0)).unwrap().x, of(0.25));
        assert!(refused(1.0, &file, Some(40.0)).contains("objective power 40x"));
        // No single number is that of oblong pixels.
        let oblong = [Claim::vendor("ome", 0.25, 0.5)];
        assert!(refused(0.25, &oblong, Some(40.0)).contains("(vertical) = 0.5"));
    }

    #[test]
    fn contradiction_names_both() {
        let e = settle(
            &[Claim::vendor("aperio.MPP", 0.25, 0.25), Claim::image("tiff.XResolution", 0.5, 0.5)],
            None,
        );
        let text = e.unwrap_err().error(Path::new("a.svs")).to_string();
        for part in ["a.svs", "0.25", "0.5", "aperio.MPP", "tiff.XResolution", "has to be given"] {
            assert!(text.contains(part), "{text}");
        }
        let e = settle(&[Claim::vendor("ome", 0.25, 0.5)], None).unwrap_err();
        assert!(matches!(e, Refusal::Contradicting(..)));
        let e = settle(&[Claim::vendor("aperio.MPP", 0.5, 0.5)], Some(40.0)).unwrap_err();
        assert!(matches!(e, Refusal::Contradicting(..)));
        assert!(settle(&[Claim::vendor("aperio.MPP", 0.499, 0.499)], Some(20.0)).is_ok());
        assert!(settle(&[Claim::vendor("aperio.MPP", 0.23, 0.23)], Some(40.0)).is_ok());
    }

    #[test]
    fn missing_states_what_is_wanted() {
        let text = settle(&[], Some(40.0)).unwrap_err().error(Path::new("a.svs")).to_string();
        assert!(text.contains("have to be given"), "{text}");
        // A screen density next to nothing is not a resolution.
        let e = settle(&[Claim::density("png.pHYs", 264.6, 264.6)], None).unwrap_err();
        assert!(matches!(e, Refusal::Missing(_)));
    }

    #[test]
    fn implausible_is_refused() {
        for v in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e6] {
            let e = settle(&[Claim::vendor("aperio.MPP", v, v)], None).unwrap_err();
            assert!(matches!(e, Refusal::Implausible(_)), "{v}");
        }
        let e = settle(&[Claim::image("tiff.XResolution", 352.8, 352.8)], None).unwrap_err();
        assert!(matches!(e, Refusal::Implausible(_)));
        // ... but does not disturb a vendor's field.
        assert!(
            settle(
                &[Claim::vendor("aperio.MPP", 0.5, 0.5), Claim::image("tiff", 352.8, 352.8)],
                None
            )
            .is_ok()
        );
    }
}
