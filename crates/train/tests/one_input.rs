//! A crop becomes a network's input in one way, for every caller: training, validation, libtorch's
//! ports, or an engine on a slide. The same bytes in, the same f32 out, bit for bit.

use infer::{
    EngineChoice, EngineError, EngineOptions, ModelPackage, Network, Plug, Plugin, Provider,
    Session, Started,
};
use mitosis::RgbTile;
use pixels::geometry::centred;
use pixels::resize::resize;
use std::sync::{Arc, Mutex};
use tch::{Device, Tensor};

/// What an engine was given, run by run.
type Given = Arc<Mutex<Vec<Vec<f32>>>>;

/// An engine that keeps its inputs and returns zero.
struct Keeps(Given);

struct Kept {
    buffer: Vec<f32>,
    values: usize,
    given: Given,
}

impl Session for Kept {
    fn input(&mut self) -> Result<&mut [f32], String> {
        Ok(&mut self.buffer)
    }

    fn run(&mut self) -> Result<Vec<f32>, String> {
        self.given.lock().unwrap().push(self.buffer.clone());
        Ok(vec![0.0; self.values])
    }
}

impl Plugin for Keeps {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn version(&self) -> String {
        "0".into()
    }

    fn start(&self, _: Provider, _: usize) -> Result<Started, EngineError> {
        let given = self.0.clone();
        let load = Box::new(move |n: &Network<'_>| {
            let &[images, _, h, w] = n.shape else { return Err("no images".into()) };
            // The segmenter answers per pixel, the classifier with two classes.
            let values = if h == 512 { images * h * w } else { 2 * images };
            let buffer = vec![0.0; n.shape.iter().product()];
            Ok(Box::new(Kept { buffer, values, given: given.clone() }) as Box<dyn Session>)
        });
        Ok(Started { provider: Provider::Cpu, load })
    }
}

fn tile(side: usize, seed: usize) -> RgbTile {
    let value = |i: usize| ((i * 2_654_435_761 + seed * 97) >> 7) as u8;
    RgbTile::new(side, side, (0..3 * side * side).map(value).collect())
}

fn flat(x: &Tensor) -> Vec<f32> {
    Vec::<f32>::try_from(&x.contiguous().view(-1)).unwrap()
}

#[test]
fn training_and_inference_give_a_network_the_same_numbers() {
    let package = testkit::workspace().join("models/mithras-standard");
    let package = ModelPackage::open(&package).unwrap();
    let given = Given::default();
    let options = EngineOptions {
        engine: EngineChoice::Torch,
        provider: Provider::Cpu,
        torch: Some(Plug(Arc::new(Keeps(given.clone())))),
        ..EngineOptions::default()
    };
    let mut models = infer::open(&package, &options).unwrap();
    let card = package.card.classifier.as_ref().unwrap();
    let (crop, input) = (card.crop, card.input);
    assert!(input > crop, "the test needs a network that enlarges its crops");

    let crops: Vec<RgbTile> = (0..3).map(|i| tile(crop, i)).collect();
    given.lock().unwrap().clear();
    models.classifier.as_mut().unwrap().classes(&crops).unwrap();
    let seen: Vec<f32> = given.lock().unwrap().concat();
    let wanted = 3 * 3 * input * input;
    let seen = &seen[..wanted.min(seen.len())];

    // Training's batches, and the ports that validate, calibrate and mine.
    let sized: Vec<RgbTile> = crops.iter().map(|c| resize(c, input, input)).collect();
    let trained = flat(&train::batch::images(&sized, Device::Cpu));
    assert_eq!(trained.len(), wanted);
    assert!(trained == seen, "training's input differs from inference's");

    // Fine-tuning over folds cuts from a larger patch; inference is given the cut.
    let patch = tile(crop + 2 * 17, 9);
    let mut inner = Vec::with_capacity(3 * crop * crop);
    for y in 17..17 + crop {
        for x in 17..17 + crop {
            inner.extend(patch.pixel(x, y));
        }
    }
    let cut = RgbTile::new(crop, crop, inner);
    assert_eq!(centred(&patch, crop, input).data, resize(&cut, input, input).data);

    let window = tile(package.card.segmenter.as_ref().unwrap().window, 4);
    given.lock().unwrap().clear();
    models.segmenter.as_mut().unwrap().probabilities(std::slice::from_ref(&window)).unwrap();
    let seen = given.lock().unwrap().concat();
    let trained = flat(&train::batch::images(std::slice::from_ref(&window), Device::Cpu));
    assert!(trained[..] == seen[..trained.len()], "a window's input differs");
}
