//! Crops for the second stage, drawn from pools by domain.
//!
//! A crop is cut from its image at the working resolution, changed there as another laboratory and
//! scanner would have it, and then sampled once at the network's own resolution.

use mitosis::RgbTile;
use pixels::{Photometric, mirror, sample_rng};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::domain::{Domain, DomainPlace, PlaceKind};
use super::sample::canvas::View;
use super::sample::{Spatial, capped_weights, choose, pick};
use crate::scene::{SampledPlace, Scene};

/// A crop with its class.
#[derive(Clone, Debug, PartialEq)]
pub struct CropSample {
    /// `input` x `input` pixels.
    pub image: RgbTile,
    /// Whether a figure is at its centre.
    pub mitotic: bool,
}

/// How often one kind of place of one domain is drawn; only the ratios of shares count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolShare {
    /// `frames`, `patches` or `unlabelled`.
    pub domain: String,
    /// What is at its places.
    pub kind: PlaceKind,
    /// Its share.
    pub share: f32,
    /// At most this share of the pool's draws comes from one slide; absent: every place is drawn
    /// alike. Where the slides are too few for it, each has the same share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_slide_share: Option<f32>,
}

/// How a crop is cut.
#[derive(Clone, Debug)]
pub struct CropRecipe {
    /// Side, px at the working resolution.
    pub crop: usize,
    /// Side of the network's input, px.
    pub input: usize,
    /// Geometric changes.
    pub spatial: Spatial,
    /// Changes of colour, sharpness and coding, made at the working resolution.
    pub photometric: Photometric,
}

/// Places of one kind in one domain.
#[derive(Clone, Debug)]
struct Pool {
    domain: usize,
    kind: PlaceKind,
    share: f32,
    max_slide_share: Option<f32>,
    /// Weight of every place, where slides are capped.
    weights: Option<Vec<f32>>,
}

impl Pool {
    /// Weighs the places of the pool as they are now.
    fn weigh(&mut self, domains: &[Domain]) {
        let domain = &domains[self.domain];
        let slide = |p: &SampledPlace| domain.scenes[p.scene].source.as_str();
        let slides = || domain.places(self.kind).iter().map(slide).collect::<Vec<_>>();
        self.weights = self.max_slide_share.map(|most| capped_weights(&slides(), most));
    }

    fn draw(&self, domain: &Domain, rng: &mut impl Rng) -> SampledPlace {
        let places = domain.places(self.kind);
        match &self.weights {
            Some(weights) => places[choose(rng, weights)],
            None => *pick(rng, places),
        }
    }
}

/// Everything the classifier of one fold may be shown.
#[derive(Debug)]
pub struct CropPool {
    domains: Vec<Domain>,
    /// Without those that hold nothing.
    pools: Vec<Pool>,
    hard: Vec<DomainPlace>,
    hard_share: f32,
    recipe: CropRecipe,
}

impl CropPool {
    /// Gathers the pools.
    ///
    /// # Errors
    /// The domain that a share names and that is not there, or a class without any place.
    pub fn new(
        domains: Vec<Domain>,
        shares: &[PoolShare],
        recipe: CropRecipe,
    ) -> Result<Self, String> {
        let mut pools = vec![];
        for s in shares {
            let Some(at) = domains.iter().position(|d| d.name == s.domain) else { continue };
            if s.share > 0.0 && !domains[at].places(s.kind).is_empty() {
                let (kind, share, max_slide_share) = (s.kind, s.share, s.max_slide_share);
                let mut pool = Pool { domain: at, kind, share, max_slide_share, weights: None };
                pool.weigh(&domains);
                pools.push(pool);
            }
        }
        for (figure, word) in [(true, "figures"), (false, "places without a figure")] {
            if !pools.iter().any(|p| (p.kind == PlaceKind::Figure) == figure) {
                return Err(format!("the pools hold no {word}"));
            }
        }
        Ok(Self { domains, pools, hard: vec![], hard_share: 0.0, recipe })
    }

    /// How many places there are, by pool.
    #[must_use]
    pub fn sizes(&self) -> Vec<String> {
        let name = |p: &Pool| {
            let domain = &self.domains[p.domain];
            format!("{} {:?} {}", domain.name, p.kind, domain.places(p.kind).len()).to_lowercase()
        };
        self.pools.iter().map(name).collect()
    }

    /// Places without a figure that `wanted` draws are chosen from, at most `most` per seed.
    #[must_use]
    pub fn candidates(&self, seed: u64, most: usize) -> Vec<DomainPlace> {
        let mut all: Vec<DomainPlace> = vec![];
        for p in self.pools.iter().filter(|p| p.kind != PlaceKind::Figure) {
            let places = self.domains[p.domain].places(p.kind);
            all.extend(places.iter().map(|&place| DomainPlace { domain: p.domain, place }));
        }
        let mut rng = sample_rng(seed, u64::MAX);
        for i in 0..most.min(all.len()) {
            let j = rng.random_range(i..all.len());
            all.swap(i, j);
        }
        all.truncate(most);
        all
    }

    /// Whether every figure of a domain's images is marked.
    #[must_use]
    pub fn labelled(&self, domain: usize) -> bool {
        self.domains[domain].labelled
    }

    /// What the pools hold, as stored, for [`crate::shortcuts::check`]: at most `most` places of
    /// each pool, by domain.
    #[must_use]
    pub fn items(&self, most: usize) -> Vec<crate::shortcuts::ShortcutItem> {
        let items = |p: &Pool| self.domains[p.domain].items(p.kind, self.recipe.crop, most);
        self.pools.iter().flat_map(items).collect()
    }

    /// From now on this share of all draws comes from these places.
    pub fn set_hard(&mut self, hard: Vec<DomainPlace>, share: f32) {
        self.hard_share = if hard.is_empty() { 0.0 } else { share };
        self.hard = hard;
    }

    /// These places are drawn no more. A pool that loses all of its places goes.
    pub fn set_aside(&mut self, places: &[DomainPlace]) {
        for &DomainPlace { domain, place } in places {
            self.domains[domain].forget(place);
        }
        let domains = &self.domains;
        self.pools.retain(|p| !domains[p.domain].places(p.kind).is_empty());
        self.pools.iter_mut().for_each(|p| p.weigh(domains));
    }

    /// A place as the network sees it where nothing is changed.
    #[must_use]
    pub fn plain(&self, DomainPlace { domain, place: p }: DomainPlace) -> RgbTile {
        plain(&self.domains[domain].scenes[p.scene], (p.x, p.y), &self.recipe)
    }

    /// Sample `index` under `seed`.
    #[must_use]
    pub fn sample(&self, seed: u64, index: u64) -> CropSample {
        let mut rng = sample_rng(seed, index);
        let hard = rng.random::<f32>() < self.hard_share;
        let (at, kind, place) = if hard {
            let &DomainPlace { domain: at, place } = pick(&mut rng, &self.hard);
            (at, PlaceKind::Listed, place)
        } else {
            let shares: Vec<f32> = self.pools.iter().map(|p| p.share).collect();
            let pool = &self.pools[choose(&mut rng, &shares)];
            (pool.domain, pool.kind, pool.draw(&self.domains[pool.domain], &mut rng))
        };
        let domain = &self.domains[at];
        let scene = &domain.scenes[place.scene];
        let side = self.native_side();
        let visible = match (kind, domain.places(PlaceKind::Dark)) {
            (PlaceKind::Figure, dark) if !dark.is_empty() => {
                let other = pick(&mut rng, dark);
                edges_like(scene, &place, &domain.scenes[other.scene], other, side)
            }
            _ => [0, 0, scene.image.width, scene.image.height],
        };
        let j = self.recipe.spatial.jitter;
        let (x, y) = (place.x + rng.random_range(-j..=j), place.y + rng.random_range(-j..=j));
        let corner = |c: f32| (c - side as f32 / 2.0).floor();
        let (x0, y0) = (corner(x), corner(y));
        let patch = cut(&scene.image, (x0 as i64, y0 as i64), side, visible);
        let patch = self.recipe.photometric.apply(&patch, &mut rng);
        let base = self.recipe.crop as f32 / self.recipe.input as f32;
        let centre = (x - x0, y - y0);
        let view = View::random(centre, self.recipe.input, base, &self.recipe.spatial, &mut rng);
        CropSample { image: view.render(&patch).0, mitotic: kind == PlaceKind::Figure }
    }

    /// What a turned, enlarged crop can need at the working resolution, px.
    fn native_side(&self) -> usize {
        let s = &self.recipe.spatial;
        let (sin, cos) = s.rotation.min(45.0).to_radians().sin_cos();
        (self.recipe.crop as f32 * (1.0 + s.scale) * (sin + cos)).ceil() as usize + 4
    }

    /// Fixed validation crops of left-out frames: every figure, every reviewed look-alike,
    /// and `ratio` dark nuclei to one figure.
    #[must_use]
    pub fn validation(
        &self,
        scenes: &[Scene],
        lookalikes: &[SampledPlace],
        ratio: usize,
    ) -> Vec<CropSample> {
        let places = super::sample::figures(scenes);
        let crop = |scene: &Scene, x, y, mitotic| CropSample {
            image: plain(scene, (x, y), &self.recipe),
            mitotic,
        };
        let mut out: Vec<_> =
            places.iter().map(|p| crop(&scenes[p.scene], p.x, p.y, true)).collect();
        out.extend(lookalikes.iter().map(|p| crop(&scenes[p.scene], p.x, p.y, false)));
        let each = (ratio * places.len()).div_ceil(scenes.len().max(1));
        for scene in scenes {
            for (x, y) in crate::scene::dark_places(scene, 40.0, each) {
                out.push(crop(scene, x, y, false));
            }
        }
        out
    }
}

fn plain(scene: &Scene, centre: (f32, f32), recipe: &CropRecipe) -> RgbTile {
    let base = recipe.crop as f32 / recipe.input as f32;
    View::upright(centre, recipe.input, base).render(&scene.image).0
}

/// The part of `scene` that `place` may show, so that its edges are as near to `place` as those of
/// `other_scene` are to `other`. A patch holds its figure in the middle and its other nuclei near
/// the edge: otherwise a mirrored edge would reveal the class.
fn edges_like(
    scene: &Scene,
    place: &SampledPlace,
    other_scene: &Scene,
    other: &SampledPlace,
    side: usize,
) -> [usize; 4] {
    let axis = |at: f32, n: usize, other: f32, m: usize| {
        // Beyond `side` an edge is out of sight.
        let room = |distance: f32| distance.min(side as f32).max(0.0);
        let lo = (at - room(other)).max(0.0).floor();
        let hi = (at + room(m as f32 - other)).min(n as f32).ceil();
        (lo as usize, (hi as usize).clamp(lo as usize + 1, n))
    };
    let (a, b) = (&scene.image, &other_scene.image);
    let (x0, x1) = axis(place.x, a.width, other.x, b.width);
    let (y0, y1) = axis(place.y, a.height, other.y, b.height);
    [x0, y0, x1, y1]
}

/// A square whose top left corner is at (`x`, `y`), mirrored at the edges of the visible part.
fn cut(image: &RgbTile, (x, y): (i64, i64), side: usize, visible: [usize; 4]) -> RgbTile {
    let [x0, y0, x1, y1] = visible;
    let column = |i: usize| x0 + mirror(x + i as i64 - x0 as i64, x1 - x0);
    let columns: Vec<usize> = (0..side).map(column).collect();
    let mut data = Vec::with_capacity(3 * side * side);
    for j in 0..side {
        let row = y0 + mirror(y + j as i64 - y0 as i64, y1 - y0);
        for &c in &columns {
            data.extend(image.pixel(c, row));
        }
    }
    RgbTile::new(side, side, data)
}

#[cfg(test)]
mod tests {
    use super::super::domain::NamedPlace;
    use super::*;
    use crate::scene::{Mark, MarkKind};

    fn nucleus(image: &mut RgbTile, cx: usize, cy: usize, value: u8) {
        for y in cy - 6..cy + 6 {
            for x in cx - 6..cx + 6 {
                let i = 3 * (y * image.width + x);
                image.data[i..i + 3].fill(value);
            }
        }
    }

    fn domains() -> Vec<Domain> {
        let mut image = RgbTile::filled(240, 200, [220, 180, 200]);
        nucleus(&mut image, 60, 60, 30);
        nucleus(&mut image, 180, 140, 60);
        let mark = Mark { x: 60.0, y: 60.0, half: 12.0, kind: MarkKind::Figure };
        let scene = |name: &str, marks| Scene {
            name: name.into(),
            source: name.into(),
            image: image.clone(),
            marks,
            partial: false,
        };
        let train =
            crate::folds::Frames { scenes: vec![scene("f", vec![mark])], ..Default::default() };
        vec![Domain::frames("icpr", &train), Domain::unlabelled("other", vec![scene("o", vec![])])]
    }

    fn recipe() -> CropRecipe {
        let photometric = Photometric {
            stain_scale: 0.0,
            stain_shift: 0.0,
            colour: 0.0,
            grey: 0.0,
            blur: 0.0,
            blur_sigma: 1.0,
            jpeg: 0.0,
            jpeg_quality: 60,
            erase: 0.0,
            scanner: None,
        };
        let spatial = Spatial { rotation: 20.0, scale: 0.2, jitter: 3.0 };
        CropRecipe { crop: 32, input: 64, spatial, photometric }
    }

    fn share(domain: &str, kind: PlaceKind, share: f32) -> PoolShare {
        PoolShare { domain: domain.into(), kind, share, max_slide_share: None }
    }

    #[test]
    fn no_slide_has_more_than_its_cap() {
        let mut slides = vec!["a"; 54];
        slides.extend(["b"; 25].iter().chain(&["c"; 15]).chain(&["d"; 6]));
        let share = |w: &[f32], s: &str| -> f32 {
            slides.iter().zip(w).filter(|(x, _)| **x == s).map(|(_, w)| w).sum()
        };
        let w = capped_weights(&slides, 0.4);
        assert!((share(&w, "a") - 0.4).abs() < 1e-5);
        assert!((share(&w, "b") - 0.6 * 25.0 / 46.0).abs() < 1e-5);
        // Two slides above the cap, the second only once the first has been cut.
        let w = capped_weights(&slides, 0.3);
        assert!((share(&w, "a") - 0.3).abs() < 1e-5 && (share(&w, "b") - 0.3).abs() < 1e-5);
        assert!((share(&w, "c") - 0.4 * 15.0 / 21.0).abs() < 1e-5);
        // A cap that no four slides can keep: all alike.
        let w = capped_weights(&slides, 0.1);
        assert!(["a", "b", "c", "d"].iter().all(|s| (share(&w, s) - 0.25).abs() < 1e-5));
        assert!((w.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_capped_pool_draws_small_slides_as_often_as_asked() {
        let mut train = crate::folds::Frames::default();
        for (i, marks) in [1, 8].into_iter().enumerate() {
            let mut image = RgbTile::filled(240, 200, [220, 180, 200]);
            nucleus(&mut image, 180, 140, 60);
            let mark =
                |k: usize| Mark { x: 40.0 + k as f32, y: 60.0, half: 12.0, kind: MarkKind::Figure };
            train.scenes.push(Scene {
                name: format!("{i}"),
                source: format!("{i}"),
                image,
                marks: (0..marks).map(mark).collect(),
                partial: false,
            });
        }
        train.lookalikes = vec![SampledPlace { scene: 0, x: 180.0, y: 140.0 }];
        let all = [
            PoolShare { max_slide_share: Some(0.5), ..share("icpr", PlaceKind::Figure, 1.0) },
            share("icpr", PlaceKind::Reviewed, 1.0),
        ];
        let mut domains = vec![Domain::frames("icpr", &train)];
        Domain::list(&mut domains, &[NamedPlace { image: "1".into(), x: 180.0, y: 140.0 }])
            .unwrap();
        let kinds = [PlaceKind::Reviewed, PlaceKind::Mined, PlaceKind::Listed];
        assert_eq!(kinds.map(|k| domains[0].places(k).len()), [1, 1, 2]);
        let pool = CropPool::new(domains, &all, recipe()).unwrap();
        let figures = &pool.pools[0];
        let mut rng = sample_rng(3, 0);
        let first = (0..2000).filter(|_| figures.draw(&pool.domains[0], &mut rng).scene == 0);
        let share = first.count() as f64 / 2000.0;
        assert!((share - 0.5).abs() < 0.05, "{share}");
    }

    #[test]
    fn crops_show_their_place_and_follow_the_shares() {
        let shares = [
            share("icpr", PlaceKind::Figure, 0.5),
            share("icpr", PlaceKind::Dark, 0.25),
            share("other", PlaceKind::Dark, 0.25),
        ];
        let pool = CropPool::new(domains(), &shares, recipe()).unwrap();
        let drawn: Vec<CropSample> = (0..200).map(|i| pool.sample(7, i)).collect();
        let figures = drawn.iter().filter(|s| s.mitotic).count();
        assert!((80..120).contains(&figures), "{figures}");
        for s in &drawn {
            assert_eq!((s.image.width, s.image.height), (64, 64));
            let centre = s.image.pixel(32, 32)[0];
            assert!(if s.mitotic { centre < 60 } else { centre < 150 }, "{centre}");
        }
        assert_eq!(drawn[3], pool.sample(7, 3));
        assert_eq!(pool.sizes()[0], "icpr figure 1");
    }

    #[test]
    fn a_pseudo_labelled_figure_is_not_a_place_without_one() {
        let mut scenes = domains().remove(1).scenes;
        let plain = Domain::unlabelled("other", scenes.clone());
        assert!(plain.places(PlaceKind::Figure).is_empty());
        let near =
            |places: &[SampledPlace]| places.iter().any(|p| (p.x - 60.0).hypot(p.y - 60.0) < 20.0);
        assert!(near(plain.places(PlaceKind::Dark)));
        scenes[0].marks = vec![Mark { x: 60.0, y: 60.0, half: 25.0, kind: MarkKind::Figure }];
        let mut marked = vec![Domain::unlabelled("other", scenes)];
        assert_eq!(marked[0].places(PlaceKind::Figure).len(), 1);
        assert!(
            !near(marked[0].places(PlaceKind::Dark)),
            "{:?}",
            marked[0].places(PlaceKind::Dark)
        );
        // What the first stage found there is that figure, and what it found elsewhere is not.
        let found =
            [(70.0, 60.0), (180.0, 140.0)].map(|(x, y)| NamedPlace { image: "o".into(), x, y });
        Domain::list(&mut marked, &found).unwrap();
        let listed = SampledPlace { scene: 0, x: 180.0, y: 140.0 };
        assert_eq!(marked[0].places(PlaceKind::Listed), [listed]);
    }

    #[test]
    fn hard_places_take_their_share() {
        let shares = [share("icpr", PlaceKind::Figure, 1.0), share("icpr", PlaceKind::Dark, 1e-6)];
        let mut pool = CropPool::new(domains(), &shares, recipe()).unwrap();
        let hard = pool.candidates(1, 10);
        assert!(!hard.is_empty());
        pool.set_hard(hard, 0.5);
        let negatives = (0..200).filter(|&i| !pool.sample(1, i).mitotic).count();
        assert!((70..130).contains(&negatives), "{negatives}");
    }

    #[test]
    fn places_set_aside_are_not_drawn_again() {
        let shares = [
            share("icpr", PlaceKind::Figure, 0.1),
            share("icpr", PlaceKind::Dark, 0.45),
            share("other", PlaceKind::Dark, 0.45),
        ];
        let mut pool = CropPool::new(domains(), &shares, recipe()).unwrap();
        let (aside, kept): (Vec<_>, Vec<_>) =
            pool.candidates(1, 10).into_iter().partition(|c| c.domain == 0);
        assert!(!aside.is_empty() && !kept.is_empty());
        pool.set_aside(&aside);
        assert!(pool.candidates(1, 10).iter().all(|c| c.domain == 1));
        assert_eq!(pool.sizes().len(), 2, "the emptied pool is gone");
        assert!((0..100).any(|i| !pool.sample(1, i).mitotic));
    }

    #[test]
    fn a_class_without_places_is_refused() {
        let only = [share("other", PlaceKind::Dark, 1.0)];
        let e = CropPool::new(domains(), &only, recipe()).unwrap_err();
        assert!(e.contains("no figures"), "{e}");
    }

    #[test]
    fn edges_come_as_near_to_figures_as_to_nuclei() {
        let image = RgbTile::filled(128, 128, [9; 3]);
        let scene = Scene {
            name: String::new(),
            source: String::new(),
            image,
            marks: vec![],
            partial: false,
        };
        let (figure, dark) = (
            SampledPlace { scene: 0, x: 64.0, y: 64.0 },
            SampledPlace { scene: 0, x: 20.0, y: 100.0 },
        );
        let visible = edges_like(&scene, &figure, &scene, &dark, 100);
        assert_eq!(visible, [44, 0, 128, 92]);
        // Far edges of a large image stay out of sight.
        let far = edges_like(&scene, &figure, &scene, &figure, 20);
        assert_eq!(far, [44, 44, 84, 84]);
    }
}
