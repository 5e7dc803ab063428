//! How candidates are taken, as flags.

use training::frames::Candidates;

/// From probabilities to candidates; written into the package's card.
#[derive(clap::Args, Debug, Clone)]
pub struct CandidateArgs {
    /// Probability threshold of candidate regions
    #[arg(long, default_value_t = 0.2)]
    threshold: f32,
    /// Radius of the morphological opening, px
    #[arg(long, default_value_t = 1)]
    opening_radius: u32,
    /// Smallest region, px
    #[arg(long, default_value_t = 20)]
    min_area: u32,
    /// Of candidates so near to each other the likeliest alone is kept, um: the halves of a division are one
    /// figure; 0 keeps all
    #[arg(long, value_name = "UM", default_value_t = 12.0)]
    apart: f64,
}

impl CandidateArgs {
    pub fn resolved(&self) -> Candidates {
        Candidates {
            min_distance_px: None,
            threshold: self.threshold,
            opening_radius: self.opening_radius,
            min_area_px: self.min_area,
            min_separation_um: (self.apart != 0.0).then_some(self.apart),
        }
    }
}
