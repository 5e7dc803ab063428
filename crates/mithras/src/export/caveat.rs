//! What a reader of a slide's numbers must know: the one place where it is decided. Tables, pages, the viewer and the
//! report show these.

use super::counts::{CountsFile, OUT_OF_FOCUS_SHARE};
use super::hotspot::HOTSPOT_MM2;
use base::text::Many;
use serde::Serialize;

/// What a caveat is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaveatKind {
    /// The resolution is outside the model's range: the counts mean nothing.
    OutsideRange,
    /// The resolution is coarser than the model was made for: figures are missed.
    Coarse,
    /// No slide of this scanner was in the training data.
    OtherScanner,
    /// Nothing was looked at.
    NoTissue,
    /// Less tissue than a hotspot.
    LittleTissue,
    /// A hotspot that hangs over the edge of the slide, or of the regions that were searched.
    CutHotspot,
    /// Much of the tissue is out of focus.
    OutOfFocus,
    /// Figures in areas out of focus, under pen or under dirt.
    FlawedFigures,
    /// The regions that were searched.
    Regions,
    /// Levels of the file that contradict each other.
    Levels,
    /// One channel of grey.
    NoColour,
    /// Tissue that could not be read.
    Unread,
    /// Pixels that the file leaves out.
    Absent,
    /// Pixels that are in doubt.
    Suspect,
}

impl CaveatKind {
    /// In few words, for the cell of a table.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::OutsideRange => "outside the model's range",
            Self::Coarse => "coarse",
            Self::OtherScanner => "other scanner",
            Self::NoTissue => "no tissue",
            Self::LittleTissue => "little tissue",
            Self::CutHotspot => "hotspot at the edge",
            Self::OutOfFocus => "out of focus",
            Self::FlawedFigures => "flawed figures",
            Self::Regions => "regions",
            Self::Levels => "levels differ",
            Self::NoColour => "no colour",
            Self::Unread => "unread tissue",
            Self::Absent => "missing tiles",
            Self::Suspect => "doubtful pixels",
        }
    }

    /// Whether it holds for the slide whatever was found on it: a blinded reviewer may know it.
    #[must_use]
    pub const fn is_about_the_slide(self) -> bool {
        !matches!(self, Self::FlawedFigures | Self::CutHotspot)
    }
}

/// What a reader must know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caveat {
    /// What it is about.
    pub kind: CaveatKind,
    /// In a sentence.
    pub text: String,
}

/// Their labels, for a cell; empty without any.
#[must_use]
pub fn labels(caveats: &[Caveat]) -> String {
    let mut all: Vec<&str> = caveats.iter().map(|c| c.kind.label()).collect();
    all.dedup();
    all.join(", ")
}

impl CountsFile {
    /// Whether figures are missed on much of the slide, so that its counts are at least so many: it is coarser than
    /// the model was made for, or out of focus.
    #[must_use]
    pub fn misses_figures(&self) -> bool {
        let misses = |c: &Caveat| matches!(c.kind, CaveatKind::Coarse | CaveatKind::OutOfFocus);
        self.caveats().iter().any(misses)
    }

    /// What of a hotspot was searched, as words after its area.
    pub(crate) const fn hotspot_place(&self) -> &'static str {
        if self.regions.is_some() { "in the regions that were searched" } else { "on the slide" }
    }

    /// What a reader of the numbers must know, what makes them meaningless first; empty for a sound slide.
    #[must_use]
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut all = Vec::new();
        let mut add = |kind, text: String| all.push(Caveat { kind, text });
        let outside = self.is_outside_range();
        let range = if outside { CaveatKind::OutsideRange } else { CaveatKind::Coarse };
        self.resolution_note.iter().for_each(|n| add(range, n.clone()));
        self.scanner_note.iter().for_each(|n| add(CaveatKind::OtherScanner, n.clone()));
        let regions = self.regions.iter().flat_map(|r| &r.notes);
        regions.for_each(|n| add(CaveatKind::Regions, n.clone()));
        if !self.has_tissue {
            add(CaveatKind::NoTissue, "no tissue was found: nothing was looked at".into());
        }
        if self.analysed_mm2 > 0.0 && self.analysed_mm2 < HOTSPOT_MM2 {
            let area = self.analysed_mm2;
            let text =
                format!("{area:.3} mm2 of tissue, less than the {HOTSPOT_MM2} mm2 of a hotspot");
            add(CaveatKind::LittleTissue, text);
        }
        // With less tissue than a hotspot the caveat above covers it.
        if let Some(area) = self.hotspot_mm2().filter(|a| *a < HOTSPOT_MM2)
            && self.analysed_mm2 >= HOTSPOT_MM2
        {
            let place = self.hotspot_place();
            let text = format!(
                "{area:.3} of the {HOTSPOT_MM2} mm2 of the hotspot are {place}: its count is at least so many"
            );
            add(CaveatKind::CutHotspot, text);
        }
        self.colour_note.iter().for_each(|n| add(CaveatKind::NoColour, n.clone()));
        self.level_notes.iter().for_each(|n| add(CaveatKind::Levels, n.clone()));
        if self.unread_mm2 > 0.0 {
            let text = format!("{:.3} mm2 of tissue could not be read", self.unread_mm2);
            add(CaveatKind::Unread, text);
        }
        let blurred = self.out_of_focus_mm2 / self.analysed_mm2;
        if blurred > OUT_OF_FOCUS_SHARE {
            let (area, percent) = (self.out_of_focus_mm2, 100.0 * blurred);
            let tissue = format!("{area:.3} mm2 of tissue ({percent:.0} %)");
            add(CaveatKind::OutOfFocus, tissue + " are out of focus, where figures are missed");
        }
        if self.flawed_figures > 0 {
            let n = Many(self.flawed_figures, "figure");
            let text = format!("{n} out of focus, under pen or under dirt (column flaw)");
            add(CaveatKind::FlawedFigures, text);
        }
        if self.absent_mm2 > 0.0 {
            let text =
                format!("{:.3} mm2 are left out of the file and read as white", self.absent_mm2);
            add(CaveatKind::Absent, text);
        }
        if self.suspect_mm2 > 0.0 {
            let why = self.suspect_reasons.join("; ");
            let text = format!("{:.3} mm2 of pixels are in doubt ({why})", self.suspect_mm2);
            add(CaveatKind::Suspect, text);
        }
        all
    }
}
