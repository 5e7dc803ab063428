//! The ports over a loaded network.

use crate::card::{BoxesCard, ClassifierCard, EncoderCard, SegmenterCard};
use crate::session::Session;
use base::panics;
use mitosis::{ClassProbs, Classifier, Encoder, PortError, ProbMap, RgbTile, Segmenter};
use pixels::input::Normalisation;
use pixels::resize::Fit;

/// A network with its input buffer of `batch` images. A short batch is computed alone by an engine that gives each
/// image the same bits in any batch; for the others it is filled up with zeros, so that one engine kernel serves
/// every image and a result cannot depend on its neighbours.
struct Runner {
    session: Box<dyn Session>,
    engine: String,
    normalisation: Normalisation,
    side: usize,
    batch: usize,
}

impl Runner {
    fn new(
        session: Box<dyn Session>,
        engine: String,
        (mean, std): ([f32; 3], [f32; 3]),
        side: usize,
        batch: usize,
    ) -> Self {
        Self { session, engine, normalisation: Normalisation::new(mean, std), side, batch }
    }

    /// As [`Self::run`]; the numbers are in [0, 1].
    fn probabilities<'a>(
        &mut self,
        images: impl ExactSizeIterator<Item = &'a [u8]>,
        values: usize,
    ) -> Result<Vec<f32>, PortError> {
        let mut output = self.run(images, values)?;
        self.check(&mut output)?;
        Ok(output)
    }

    /// Runs up to `batch` images of `side x side`; the result has `n * values` numbers.
    fn run<'a>(
        &mut self,
        images: impl ExactSizeIterator<Item = &'a [u8]>,
        values: usize,
    ) -> Result<Vec<f32>, PortError> {
        let n = images.len();
        let size = 3 * self.side * self.side;
        let fail = |message| PortError::Engine { engine: self.engine.clone(), message };
        let input = self.session.input().map_err(fail)?;
        if input.len() != self.batch * size {
            return Err(fail(format!("its input takes {} values", input.len())));
        }
        let mut slots = input.chunks_exact_mut(size);
        for (image, slot) in images.zip(&mut slots) {
            self.normalisation.planes(image, slot);
        }
        slots.for_each(|slot| slot.fill(0.0));
        if n == 0 {
            return Ok(Vec::new());
        }
        let mut output = panics::catch_panic(|| self.session.run_first(n)).map_err(fail)?;
        if output.len() != self.batch * values && output.len() != n * values {
            return Err(fail(format!(
                "the network returned {} values for {} images, {} were expected",
                output.len(),
                self.batch,
                self.batch * values
            )));
        }
        output.truncate(n * values);
        Ok(output)
    }

    /// Rounding may leave a softmax a hair above 1; anything more is a broken model.
    fn check(&self, output: &mut [f32]) -> Result<(), PortError> {
        const ROUNDING: f32 = 1e-5;
        if output.iter().all(|v| (0.0..=1.0).contains(v)) {
            return Ok(());
        }
        for v in output {
            if !(-ROUNDING..=1.0 + ROUNDING).contains(v) {
                return Err(PortError::NotAProbability { engine: self.engine.clone(), value: *v });
            }
            *v = v.clamp(0.0, 1.0);
        }
        Ok(())
    }
}

fn sized(tile: &RgbTile, side: usize) -> Result<(), PortError> {
    if tile.width == side && tile.height == side {
        return Ok(());
    }
    Err(PortError::TileSize {
        expected: format!("{side}x{side}"),
        width: tile.width,
        height: tile.height,
    })
}

/// First stage.
pub(crate) struct OnnxSegmenter {
    runner: Runner,
    boxes: Option<BoxesCard>,
}

impl OnnxSegmenter {
    pub(crate) fn new(
        session: Box<dyn Session>,
        engine: String,
        card: &SegmenterCard,
        batch: usize,
    ) -> Self {
        let runner = Runner::new(session, engine, (card.mean, card.std), card.window, batch);
        Self { runner, boxes: card.boxes.clone() }
    }

    /// Maps with the score of each box at its centre, 0 elsewhere.
    fn centres(
        &mut self,
        card: &BoxesCard,
        windows: &[RgbTile],
    ) -> Result<Vec<ProbMap>, PortError> {
        let side = self.runner.side;
        let values = card.sides().iter().product();
        let mut maps = Vec::with_capacity(windows.len());
        for chunk in windows.chunks(self.runner.batch) {
            let output = self.runner.run(chunk.iter().map(|w| &*w.data), values)?;
            if let Some(&value) = output.iter().find(|v| !v.is_finite()) {
                let engine = self.runner.engine.clone();
                return Err(PortError::NotAProbability { engine, value });
            }
            for image in output.chunks_exact(values) {
                let mut data = vec![0.0_f32; side * side];
                for (x, y, score) in card.centres(image) {
                    let mut score = [score];
                    self.runner.check(&mut score)?;
                    let inside = |v: f32| v >= 0.0 && v < side as f32;
                    if inside(x) && inside(y) {
                        let at = y as usize * side + x as usize;
                        data[at] = data[at].max(score[0]);
                    }
                }
                maps.push(ProbMap { width: side, height: side, data });
            }
        }
        Ok(maps)
    }
}

impl Segmenter for OnnxSegmenter {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        let side = self.runner.side;
        windows.iter().try_for_each(|w| sized(w, side))?;
        if let Some(card) = self.boxes.clone() {
            return self.centres(&card, windows);
        }
        let mut maps = Vec::with_capacity(windows.len());
        for chunk in windows.chunks(self.runner.batch) {
            let output = self.runner.probabilities(chunk.iter().map(|w| &*w.data), side * side)?;
            if chunk.len() == 1 {
                maps.push(ProbMap { width: side, height: side, data: output });
            } else {
                maps.extend(output.chunks_exact(side * side).map(|d| ProbMap {
                    width: side,
                    height: side,
                    data: d.to_vec(),
                }));
            }
        }
        Ok(maps)
    }
}

/// Second stage, tumour filter or subtype model.
pub(crate) struct OnnxClassifier {
    runner: Runner,
    card: ClassifierCard,
    fit: Fit,
    /// Sides of the crops that it takes: the network's own resolution, or the card's.
    takes: [usize; 2],
}

impl OnnxClassifier {
    pub(crate) fn new(
        session: Box<dyn Session>,
        engine: String,
        card: &ClassifierCard,
        batch: usize,
    ) -> Self {
        Self {
            runner: Runner::new(session, engine, (card.mean, card.std), card.input, batch),
            card: card.clone(),
            fit: card.fit(),
            takes: [card.input, card.crop],
        }
    }

    /// Takes the crops that are cut for another classifier.
    pub(crate) fn with_crops_like(mut self, other: &ClassifierCard) -> Self {
        self.takes = [other.input, other.crop];
        self
    }
}

impl Classifier for OnnxClassifier {
    fn class_names(&self) -> &[String] {
        &self.card.classes
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let [one, other] = self.takes;
        crops.iter().try_for_each(|c| sized(c, one).or_else(|_| sized(c, other)))?;
        let n = self.card.width();
        let mut all = Vec::with_capacity(crops.len());
        for chunk in crops.chunks(self.runner.batch) {
            let images: Vec<_> = chunk.iter().map(|c| self.fit.apply(c)).collect();
            let output = self.runner.probabilities(images.iter().map(|i| &*i.data), n)?;
            all.extend(output.chunks_exact(n).map(|p| ClassProbs(self.card.summed(p))));
        }
        Ok(all)
    }
}

/// A frozen encoder.
pub(crate) struct OnnxEncoder {
    runner: Runner,
    name: String,
    width: usize,
    fit: Fit,
}

impl OnnxEncoder {
    pub(crate) fn new(
        session: Box<dyn Session>,
        (engine, name): (String, String),
        card: &EncoderCard,
        batch: usize,
    ) -> Self {
        Self {
            runner: Runner::new(session, engine, (card.mean, card.std), card.input, batch),
            name,
            width: card.width,
            fit: card.fit(),
        }
    }
}

impl Encoder for OnnxEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.width
    }

    fn features(&mut self, tiles: &[RgbTile]) -> Result<Vec<f32>, PortError> {
        let mut all = Vec::with_capacity(tiles.len() * self.width);
        for chunk in tiles.chunks(self.runner.batch) {
            let images: Vec<_> = chunk.iter().map(|t| self.fit.apply(t)).collect();
            all.extend(self.runner.run(images.iter().map(|i| &*i.data), self.width)?);
        }
        match all.iter().find(|v| !v.is_finite()) {
            Some(&value) => Err(PortError::NotFinite { engine: self.runner.engine.clone(), value }),
            None => Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine that answers with what it is given.
    struct Fixed(Vec<f32>, Vec<f32>);

    impl Session for Fixed {
        fn input(&mut self) -> Result<&mut [f32], String> {
            Ok(&mut self.0)
        }

        fn run(&mut self) -> Result<Vec<f32>, String> {
            Ok(self.1.clone())
        }
    }

    fn answer(output: Vec<f32>) -> Result<Vec<f32>, PortError> {
        let mut runner = Runner {
            session: Box::new(Fixed(vec![0.0; 12], output)),
            engine: "test".into(),
            normalisation: Normalisation::new([0.5; 3], [0.5; 3]),
            side: 2,
            batch: 1,
        };
        runner.probabilities([&[255_u8; 12][..]].into_iter(), 2)
    }

    #[test]
    fn only_probabilities_come_out() {
        assert_eq!(answer(vec![0.25, 0.75]).unwrap(), [0.25, 0.75]);
        assert_eq!(answer(vec![-1e-7, 1.000_000_2]).unwrap(), [0.0, 1.0]);
        for bad in [f32::NAN, f32::INFINITY, 1.1, -0.1] {
            let e = answer(vec![0.5, bad]).unwrap_err();
            assert!(matches!(e, PortError::NotAProbability { .. }), "{bad}: {e}");
        }
        assert!(matches!(answer(vec![0.5]), Err(PortError::Engine { .. })));
    }

    /// An engine that computes as many images as it is asked for, each 2 x 2, and answers with the number.
    struct Counts(Vec<f32>);

    impl Session for Counts {
        fn input(&mut self) -> Result<&mut [f32], String> {
            Ok(&mut self.0)
        }

        fn run(&mut self) -> Result<Vec<f32>, String> {
            self.run_first(self.0.len() / 12)
        }

        fn run_first(&mut self, images: usize) -> Result<Vec<f32>, String> {
            Ok(vec![images as f32; images])
        }
    }

    #[test]
    fn a_short_batch_is_not_filled_up_where_the_engine_takes_it() {
        let mut runner = Runner {
            session: Box::new(Counts(vec![0.0; 4 * 12])),
            engine: "test".into(),
            normalisation: Normalisation::new([0.5; 3], [0.5; 3]),
            side: 2,
            batch: 4,
        };
        let image = [255_u8; 12];
        for n in 0..=4 {
            let got = runner.run(std::iter::repeat_n(&image[..], n), 1).unwrap();
            assert_eq!(got, vec![n as f32; n]);
        }
    }

    /// An engine that panics.
    struct Panics(Vec<f32>);

    impl Session for Panics {
        fn input(&mut self) -> Result<&mut [f32], String> {
            Ok(&mut self.0)
        }

        fn run(&mut self) -> Result<Vec<f32>, String> {
            panic!("an operator's own bug")
        }
    }

    #[test]
    fn an_engine_that_panics_is_an_error() {
        let mut runner = Runner {
            session: Box::new(Panics(vec![0.0; 12])),
            engine: "test".into(),
            normalisation: Normalisation::new([0.5; 3], [0.5; 3]),
            side: 2,
            batch: 1,
        };
        let e = runner.run([&[255_u8; 12][..]].into_iter(), 2).unwrap_err();
        assert!(e.to_string().contains("an operator's own bug"), "{e}");
    }
}
