//! What came through, and how long it took.

use serde::{Deserialize, Serialize};

/// How many of each came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funnel {
    /// Tiles of the slide's grid.
    pub grid_tiles: u64,
    /// Tiles that touch tissue.
    pub tissue_tiles: u64,
    /// Tiles that could not be read.
    pub unread_tiles: u64,
    /// Tiles that the filter kept.
    pub tumour_tiles: u64,
    /// Candidates of the first stage in windows on kept tiles.
    pub candidates: u64,
    /// Candidates whose centroid is in a kept tile, with both scores.
    pub in_tiles: u64,
    /// Pseudo-figures.
    pub figures: u64,
    /// Pseudo-mimickers.
    pub mimickers: u64,
    /// Between both: excluded by the rule.
    pub excluded: u64,
    /// Crops that could not be read.
    pub unread_crops: u64,
    /// Unlabelled patches.
    pub patches: u64,
    /// Resolutions left out because the slide itself is coarser.
    #[serde(default)]
    pub too_fine: u64,
    /// Tiles that were drawn for two filters.
    #[serde(default)]
    pub drawn_tiles: u64,
    /// Of two filters: tiles that both kept.
    #[serde(default)]
    pub both_filters: u64,
    /// Tiles that the second alone kept.
    #[serde(default)]
    pub second_only: u64,
}

impl Funnel {
    /// Names and values, in order.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, u64); 15] {
        [
            ("tiles in the grid", self.grid_tiles),
            ("tiles on tissue", self.tissue_tiles),
            ("tiles unreadable", self.unread_tiles),
            ("tiles kept by the filter", self.tumour_tiles),
            ("candidates", self.candidates),
            ("candidates in kept tiles", self.in_tiles),
            ("pseudo-figures", self.figures),
            ("pseudo-mimickers", self.mimickers),
            ("excluded by the rule", self.excluded),
            ("crops unreadable", self.unread_crops),
            ("unlabelled patches", self.patches),
            ("resolutions finer than the slide", self.too_fine),
            ("tiles drawn for two filters", self.drawn_tiles),
            ("tiles kept by both filters", self.both_filters),
            ("tiles kept by the second alone", self.second_only),
        ]
    }

    /// Pseudo-labelled crops and unlabelled patches together.
    #[must_use]
    pub fn crops(&self) -> u64 {
        self.figures + self.mimickers + self.patches
    }

    /// Share of the tiles on tissue, or of those that were drawn, that each filter kept, without those that could not
    /// be read; empty without filters, and where no tile was looked at.
    #[must_use]
    pub fn kept_shares(&self, filters: usize) -> Vec<f64> {
        let (all, kept) = match filters {
            0 => return vec![],
            1 => (self.tissue_tiles, vec![self.tumour_tiles]),
            _ => (self.drawn_tiles, vec![self.tumour_tiles, self.both_filters + self.second_only]),
        };
        match all.saturating_sub(self.unread_tiles) {
            0 => vec![],
            read => kept.into_iter().map(|n| n as f64 / read as f64).collect(),
        }
    }

    /// Adds another slide's counts.
    pub fn add(&mut self, o: &Self) {
        self.grid_tiles += o.grid_tiles;
        self.tissue_tiles += o.tissue_tiles;
        self.unread_tiles += o.unread_tiles;
        self.tumour_tiles += o.tumour_tiles;
        self.candidates += o.candidates;
        self.in_tiles += o.in_tiles;
        self.figures += o.figures;
        self.mimickers += o.mimickers;
        self.excluded += o.excluded;
        self.unread_crops += o.unread_crops;
        self.patches += o.patches;
        self.too_fine += o.too_fine;
        self.drawn_tiles += o.drawn_tiles;
        self.both_filters += o.both_filters;
        self.second_only += o.second_only;
    }
}

/// Seconds per stage; never part of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Opening and tissue mask.
    pub tissue: f64,
    /// Tumour filter, reading included.
    pub filter: f64,
    /// Detector.
    pub detect: f64,
    /// Crops: reading, encoding, writing.
    pub crops: f64,
}

impl Seconds {
    /// Adds another slide's.
    pub fn add(&mut self, o: &Self) {
        self.tissue += o.tissue;
        self.filter += o.filter;
        self.detect += o.detect;
        self.crops += o.crops;
    }

    /// All stages together.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.tissue + self.filter + self.detect + self.crops
    }
}
