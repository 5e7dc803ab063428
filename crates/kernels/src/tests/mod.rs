//! Every operator, every instruction set and every fusion against plain loops.

mod builder;
mod bundled;
mod reference;

use crate::error::PlanError;
use crate::isa::Isa;
use crate::network::{Network, PlanOptions};
use builder::{Builder, float, int, ints, text};
use proptest::prelude::*;
use reference::Plane;

const INPUT: &str = "image";

fn plan(b: &Builder, shape: [usize; 3], output: &str, isa: Isa, together: usize) -> Network {
    let options = PlanOptions { isa, together, ..PlanOptions::new(INPUT, shape, output) };
    Network::plan(b.file().as_slice(), &options).unwrap()
}

fn images(n: usize, [c, h, w]: [usize; 3], seed: u64) -> Vec<f32> {
    builder::Noise::new(seed ^ 0x5eed).list(n * c * h * w, 1.5)
}

/// Runs on every instruction set, alone and with others, and compares with the loops.
fn check(b: &Builder, shape: [usize; 3], output: &str) {
    let [c, h, w] = shape;
    let n = 3;
    let input = images(n, shape, 7);
    let want: Vec<f64> = input
        .chunks_exact(c * h * w)
        .flat_map(|image| {
            let v = image.iter().map(|v| f64::from(*v)).collect();
            reference::run(&b.graph, (INPUT, Plane { c, h, w, v }), output).v
        })
        .collect();
    let largest = want.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for isa in Isa::available() {
        let mut first: Option<Vec<f32>> = None;
        for (together, threads) in [(1, 1), (2, 1), (4, 3)] {
            let network = plan(b, shape, output, isa, together);
            let mut got = vec![f32::NAN; n * network.output_len()];
            assert_eq!(got.len(), want.len());
            let mut workspaces = Vec::new();
            network.run(&mut workspaces, &input, &mut got, threads).unwrap();
            // Again in used memory: nothing may be left of the run before.
            let mut again = vec![f32::NAN; got.len()];
            network.run(&mut workspaces, &input, &mut again, threads).unwrap();
            assert_eq!(got, again, "{isa}");
            let off = got.iter().zip(&want).map(|(g, w)| (f64::from(*g) - w).abs());
            let off = off.fold(0.0, |m, v| if v.is_nan() { f64::INFINITY } else { v.max(m) });
            let transformed = network.describe().iter().any(|(name, _)| name.contains("Winograd"));
            let allowed = if transformed { 1.2e-5 } else { 2e-6 };
            assert!(off <= allowed * largest, "{isa}: off by {off} of {largest}");
            assert!(got.iter().all(|v| v.is_finite()));
            match &first {
                None => first = Some(got),
                Some(first) => {
                    assert_eq!(first, &got, "{isa}: {together} together, {threads} threads")
                }
            }
        }
        // One image alone has the bits that it has among others.
        let network = plan(b, shape, output, isa, 4);
        let mut alone = vec![0.0; network.output_len()];
        network.run(&mut Vec::new(), &input[2 * c * h * w..], &mut alone, 2).unwrap();
        assert_eq!(alone, first.unwrap()[2 * network.output_len()..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    // Each argument is a range that the cases are drawn from.
    #[test]
    fn dense_convolutions(
        (cin, cout) in (1..40_usize, 1..70_usize), (h, w) in (1..30_usize, 1..40_usize),
        (kh, kw) in (1..5_usize, 1..5_usize), (sy, sx) in (1..4_usize, 1..4_usize),
        pads in prop::array::uniform4(0..3_usize), (dy, dx) in (1..3_usize, 1..3_usize), seed: u64,
    ) {
        let reach = |k: usize, d: usize| d * (k - 1) + 1;
        prop_assume!(h + pads[0] + pads[2] >= reach(kh, dy) && w + pads[1] + pads[3] >= reach(kw, dx));
        let mut b = Builder::new(seed);
        let weight = b.weights(&[cout, cin, kh, kw]);
        let y = b.node("Conv", &[INPUT, &weight], vec![
            ints("strides", &[sy as i64, sx as i64]),
            ints("pads", &pads.map(|p| p as i64)),
            ints("dilations", &[dy as i64, dx as i64]),
        ]);
        check(&b, [cin, h, w], &y);
    }

    #[test]
    fn grouped_and_depthwise(
        groups in 1..20_usize, (cin, cout) in (1..5_usize, 1..5_usize), (h, w) in (1..20_usize, 1..40_usize),
        (k, s) in prop_oneof![Just(1_usize), Just(3), Just(5), Just(7)].prop_flat_map(|k| (Just(k), 1..3_usize)),
        one in any::<bool>(), seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let (cin, cout) = if one { (groups, groups) } else { (cin * groups, cout * groups) };
        let y = b.conv(INPUT, (cin, cout), (k, s), groups);
        let y = b.node("Relu", &[&y], vec![]);
        check(&b, [cin, h, w], &y);
    }

    #[test]
    fn inverted_residuals(
        (cin, expand, cout) in (1..30_usize, 1..5_usize, 1..30_usize), (h, w) in (1..26_usize, 1..60_usize),
        (k, s) in (prop_oneof![Just(3_usize), Just(5)], 1..3_usize),
        (expands, same, kind) in (any::<bool>(), any::<bool>(), 0..4_usize), seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let wide = if expands { cin * expand * 3 } else { cin };
        let act = |b: &mut Builder, x: &str| match kind {
            0 => b.relu6(x),
            1 => b.node("Relu", &[x], vec![]),
            2 => {
                let s = b.node("Sigmoid", &[x], vec![]);
                b.node("Mul", &[x, &s], vec![])
            }
            _ => b.node("HardSwish", &[x], vec![]),
        };
        let stem = b.conv(INPUT, (cin, cin), (1, 1), 1);
        let mut y = stem.clone();
        if expands {
            y = b.conv(&y, (cin, wide), (1, 1), 1);
            y = act(&mut b, &y);
        }
        y = b.conv(&y, (wide, wide), (k, s), wide);
        y = act(&mut b, &y);
        let cout = if same && s == 1 { cin } else { cout };
        y = b.conv(&y, (wide, cout), (1, 1), 1);
        if same && s == 1 {
            y = b.node("Add", &[&stem, &y], vec![]);
        }
        let y = b.node("Relu", &[&y], vec![]);
        check(&b, [cin, h, w], &y);
    }

    #[test]
    fn decoders(
        (low, skip, cout) in (1..30_usize, 1..20_usize, 1..40_usize), (h, w) in (1..12_usize, 1..24_usize),
        (k, other) in (prop_oneof![Just(1_usize), Just(3)], any::<bool>()), seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let fine = b.conv(INPUT, (3, skip), (3, 1), 1);
        let coarse = b.conv(INPUT, (3, low), (3, 2), 1);
        let up = b.twice(&coarse);
        let cat = b.node("Concat", &[&up, &fine], vec![int("axis", 1)]);
        let y = b.conv(&cat, (low + skip, cout), (k, 1), 1);
        let mut y = b.node("Relu", &[&y], vec![]);
        if other {
            // The enlarged value has another reader, a sum.
            let lateral = b.conv(INPUT, (3, low), (1, 1), 1);
            let sum = b.node("Add", &[&up, &lateral], vec![]);
            y = b.node("Concat", &[&y, &sum], vec![int("axis", -3)]);
        }
        let n = if other { cout + low } else { cout };
        let y = b.conv(&y, (n, 1), (3, 1), 1);
        let y = b.node("Sigmoid", &[&y], vec![]);
        check(&b, [3, 2 * h, 2 * w], &y);
    }

    /// Sides of which outputs go in whole tiles of 2 x 2, 3 x 3 or 4 x 4; one source of two is perhaps enlarged.
    #[test]
    fn winograd_convolutions(
        (cin, other, cout) in (8..40_usize, 0..24_usize, 8..52_usize), (h, w) in (1..8_usize, 1..12_usize),
        (enlarged, residual, kind) in (any::<bool>(), any::<bool>(), 0..3_usize), odd: bool, seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let x = b.conv(INPUT, (3, cin), (1, if enlarged { 2 } else { 1 }), 1);
        let mut all = if enlarged { b.twice(&x) } else { x };
        if other > 0 {
            let second = b.conv(INPUT, (3, other), (1, 1), 1);
            all = b.node("Concat", &[&all, &second], vec![int("axis", 1)]);
        }
        let shortcut = b.conv(INPUT, (3, cout), (1, 1), 1);
        let mut y = b.conv(&all, (cin + other, cout), (3, 1), 1);
        if residual {
            y = b.node("Add", &[&y, &shortcut], vec![]);
        }
        let y = match kind {
            0 => y,
            1 => b.relu6(&y),
            _ => b.node("Sigmoid", &[&y], vec![]),
        };
        let side = if odd && !enlarged { 3 } else { 2 };
        let shape = [3, side * h, side * w];
        let network = plan(&b, shape, &y, Isa::best(), 1);
        assert!(network.describe().iter().any(|(name, _)| name.contains("Winograd")));
        check(&b, shape, &y);
    }

    // Each argument is a range that the cases are drawn from.
    #[test]
    fn pools_and_resizes(
        c in 1..20_usize, (h, w) in (3..20_usize, 3..20_usize), (k, s, p) in (2..4_usize, 1..3_usize, 0..2_usize),
        (mode, place, round) in (0..2_usize, 0..3_usize, 0..4_usize), (sy, sx) in (1..4_usize, 1..4_usize),
        (padded, kind) in (any::<bool>(), 0..3_usize), seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let (k, s, p) = (k as i64, s as i64, p as i64);
        let window = vec![ints("kernel_shape", &[k, k]), ints("strides", &[s, s]), ints("pads", &[p; 4])];
        let most = b.node("MaxPool", &[INPUT], window.clone());
        let counts = [window, vec![int("count_include_pad", padded.into())]].concat();
        let mean = b.node("AveragePool", &[INPUT], counts);
        let both = b.node("Concat", &[&most, &mean], vec![int("axis", 1)]);
        let scales = b.floats(&[4], vec![1.0, 1.0, sy as f32, sx as f32]);
        let y = b.node("Resize", &[&both, "", &scales], vec![
            text("mode", ["nearest", "linear"][mode]),
            text("coordinate_transformation_mode", ["half_pixel", "asymmetric", "align_corners"][place]),
            text("nearest_mode", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"][round]),
        ]);
        prop_assume!(mode == 1 || place < 2);
        let y = match kind {
            0 => y,
            1 => b.node("Relu", &[&y], vec![]),
            _ => b.node("Sigmoid", &[&y], vec![]),
        };
        check(&b, [c, h, w], &y);
    }

    /// 1 x 1 on narrow maps, whose outputs have a border where the next kernel is larger: what they read is one row of
    /// pixels where it has no border, and is gathered where it has. Before it a scale, a shift and a limit.
    #[test]
    fn points_of_narrow_maps(
        (cin, cout) in (1..300_usize, 1..60_usize), (h, w) in (1..20_usize, 1..20_usize),
        (bordered, residual, next) in (any::<bool>(), any::<bool>(), any::<bool>()), seed: u64,
    ) {
        let mut b = Builder::new(seed);
        let x = b.node("Relu", &[INPUT], vec![]);
        let scale = b.noise.list(cin, 1.0);
        let scale = b.floats(&[cin, 1, 1], scale);
        let y = b.node("Mul", &[&x, &scale], vec![]);
        let y = b.relu6(&y);
        let mut point = b.conv(&y, (cin, cout), (1, 1), 1);
        if residual {
            let shortcut = b.conv(&x, (cin, cout), (1, 1), 1);
            point = b.node("Add", &[&point, &shortcut], vec![]);
        }
        let mut all = b.conv(&point, (cout, 5), (if next { 3 } else { 1 }, 1), 1);
        if bordered {
            // Another reader, with a larger kernel.
            let other = b.conv(&y, (cin, 5), (3, 1), 1);
            all = b.node("Add", &[&all, &other], vec![]);
        }
        check(&b, [cin, h, w], &all);
    }

    #[test]
    fn classifiers(
        (c, classes) in (1..24_usize, 1..6_usize), (h, w) in (1..12_usize, 1..12_usize), flat: bool, seed: u64,
    ) {
        let mut b = Builder::new(seed);
        // Normalisation before a padded convolution cannot be folded into it.
        let (scale, shift) = (b.noise.list(3, 1.0), b.noise.list(3, 1.0));
        let (scale, shift) = (b.floats(&[3, 1, 1], scale), b.floats(&[1, 3, 1, 1], shift));
        let y = b.node("Mul", &[INPUT, &scale], vec![]);
        let y = b.node("Add", &[&y, &shift], vec![]);
        let stem = b.conv(&y, (3, c), (3, 1), 1);
        let statistics: Vec<String> = (0..4).map(|i| {
            let v = b.noise.list(c, 0.5).iter().map(|v| if i == 3 { v.abs() + 0.1 } else { *v }).collect();
            b.floats(&[c], v)
        }).collect();
        let s: Vec<&str> = statistics.iter().map(String::as_str).collect();
        let y = b.node("BatchNormalization", &[&stem, s[0], s[1], s[2], s[3]], vec![]);
        let y = b.node("LeakyRelu", &[&y], vec![float("alpha", 0.1)]);
        // Squeeze and excite.
        let mean = b.node("GlobalAveragePool", &[&y], vec![]);
        let gate = b.conv(&mean, (c, c), (1, 1), 1);
        let gate = b.node("HardSigmoid", &[&gate], vec![]);
        let y = b.node("Mul", &[&gate, &y], vec![]);
        let other = b.conv(&y, (c, c), (1, 1), 1);
        let y = b.node("Add", &[&other, &y], vec![]);
        let (y, n) = if flat {
            (b.node("Flatten", &[&y], vec![int("axis", 1)]), c * h * w)
        } else {
            let axes = b.int64s(&[2, 3]);
            let y = b.node("ReduceMean", &[&y, &axes], vec![int("keepdims", 0)]);
            (y, c)
        };
        let weight = b.weights(&[classes, n]);
        let bias = b.noise.list(classes, 0.3);
        let bias = b.floats(&[classes], bias);
        let y = b.node("Gemm", &[&y, &weight, &bias], vec![int("transB", 1)]);
        let y = b.node("Tanh", &[&y], vec![]);
        let weight = b.weights(&[classes, classes]);
        let y = b.node("MatMul", &[&y, &weight], vec![]);
        let y = b.node("Softmax", &[&y], vec![int("axis", -1)]);
        check(&b, [3, h, w], &y);
    }

    /// Whatever the bytes are, the answer is an error or a network.
    #[test]
    fn damaged_files_are_refused(seed: u64, flips in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        let mut b = Builder::new(seed);
        let y = b.conv(INPUT, (3, 4), (3, 1), 1);
        let y = b.twice(&y);
        let y = b.node("MaxPool", &[&y], vec![ints("kernel_shape", &[2, 2])]);
        let mut file = b.file();
        let n = file.len();
        flips.iter().for_each(|(at, v)| file[at % n] = *v);
        let _ = Network::plan(file.as_slice(), &PlanOptions::new(INPUT, [3, 9, 9], &y));
    }
}

#[test]
fn deep_products_are_split_and_equal_the_loops() {
    let mut b = Builder::new(3);
    let y = b.conv(INPUT, (100, 70), (3, 1), 1);
    let y = b.node("Add", &[&y, &y], vec![]);
    let y = b.conv(&y, (70, 50), (3, 1), 1);
    check(&b, [100, 9, 24], &y);
    let mut b = Builder::new(4);
    let wide = b.conv(INPUT, (8, 500), (1, 1), 1);
    let y = b.conv(&wide, (500, 33), (1, 1), 1);
    check(&b, [8, 5, 7], &y);
}

#[test]
fn a_large_random_network_equals_the_loops() {
    for seed in 0..6 {
        let mut b = Builder::new(seed);
        let mut y = b.conv(INPUT, (3, 16), (3, 2), 1);
        let mut c = 16;
        let mut kept = vec![(y.clone(), c, 0)];
        for level in 0..3 {
            let k = [3, 5][b.noise.below(2)];
            let cout = 8 * (1 + b.noise.below(5));
            for i in 0..2 {
                let x = y.clone();
                let s = if i == 0 { 2 } else { 1 };
                let wide = c * 6;
                let e = b.conv(&x, (c, wide), (1, 1), 1);
                let e = b.relu6(&e);
                let d = b.conv(&e, (wide, wide), (k, s), wide);
                let d = b.relu6(&d);
                y = b.conv(&d, (wide, cout), (1, 1), 1);
                if c == cout && s == 1 {
                    y = b.node("Add", &[&y, &x], vec![]);
                }
                c = cout;
            }
            kept.push((y.clone(), c, level + 1));
        }
        kept.pop();
        while let Some((skip, n, _)) = kept.pop() {
            let up = b.twice(&y);
            let cat = b.node("Concat", &[&up, &skip], vec![int("axis", 1)]);
            y = b.conv(&cat, (c + n, 16), (3, 1), 1);
            y = b.node("Relu", &[&y], vec![]);
            c = 16;
        }
        let y = b.conv(&y, (16, 1), (3, 1), 1);
        let y = b.node("Sigmoid", &[&y], vec![]);
        check(&b, [3, 64, 96], &y);
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let mut b = Builder::new(1);
    let weight = b.weights(&[3, 4, 2, 2]);
    let y = b.node("ConvTranspose", &[INPUT, &weight], vec![]);
    let e =
        Network::plan(b.file().as_slice(), &PlanOptions::new(INPUT, [3, 8, 8], &y)).unwrap_err();
    assert!(
        matches!(&e, PlanError::Unsupported { operator, .. } if operator == "ConvTranspose"),
        "{e}"
    );
    let mut b = Builder::new(1);
    let y = b.node("MaxPool", &[INPUT], vec![ints("kernel_shape", &[2, 2]), int("ceil_mode", 1)]);
    let e =
        Network::plan(b.file().as_slice(), &PlanOptions::new(INPUT, [3, 8, 8], &y)).unwrap_err();
    assert!(e.to_string().contains("MaxPool") && e.to_string().contains("ceil_mode"), "{e}");
    let enlarged = |policy: &str| {
        let mut b = Builder::new(1);
        let sizes = b.int64s(&[1, 3, 12, 16]);
        let attributes = vec![text("mode", "linear"), text("keep_aspect_ratio_policy", policy)];
        let y = b.node("Resize", &[INPUT, "", "", &sizes], attributes);
        Network::plan(b.file().as_slice(), &PlanOptions::new(INPUT, [3, 8, 8], &y)).map(drop)
    };
    assert_eq!(enlarged("stretch"), Ok(()));
    let e = enlarged("not_larger").unwrap_err().to_string();
    assert!(e.contains("Resize") && e.contains("keep_aspect_ratio_policy `not_larger`"), "{e}");
}

/// Before version 13 `Softmax` runs over everything from its axis on.
#[test]
fn a_softmax_of_an_old_version_is_taken_where_it_is_one_of_channels() {
    let plan = |pooled: bool, version: i64, attributes: Vec<proto::AttributeProto>| {
        let mut b = Builder::new(1);
        let pool = ["Identity", "GlobalAveragePool"][usize::from(pooled)];
        let y = b.node(pool, &[INPUT], vec![]);
        let y = b.node("Softmax", &[&y], attributes);
        Network::plan(
            b.file_for_operators(version).as_slice(),
            &PlanOptions::new(INPUT, [3, 4, 4], &y),
        )
        .map(drop)
    };
    for attributes in [vec![], vec![int("axis", 1)], vec![int("axis", -3)]] {
        let e = plan(false, 11, attributes.clone()).unwrap_err().to_string();
        assert!(e.contains("Softmax") && e.contains("version 11"), "{e}");
        assert_eq!(plan(true, 11, attributes), Ok(()));
    }
    assert_eq!(plan(false, 13, vec![int("axis", 1)]), Ok(()));
}

#[test]
fn a_shape_gives_the_sides_that_it_is_asked_for() {
    // Enlarges to twice the sides: the last two, or those before the end.
    for attributes in
        [vec![int("start", 2)], vec![int("start", -2)], vec![int("end", 4), int("start", 2)]]
    {
        let mut b = Builder::new(3);
        let sides = b.node("Shape", &[INPUT], attributes);
        let twice = b.int64s(&[2]);
        let sides = b.node("Mul", &[&sides, &twice], vec![]);
        let images = b.int64s(&[1, 3]);
        let sizes = b.node("Concat", &[&images, &sides], vec![int("axis", 0)]);
        let y = b.node("Resize", &[INPUT, "", "", &sizes], vec![text("mode", "linear")]);
        let network = plan(&b, [3, 4, 6], &y, Isa::best(), 1);
        assert_eq!(network.output_len(), 3 * 8 * 12);
    }
}

#[test]
fn nan_is_never_hidden() {
    let mut b = Builder::new(5);
    let y = b.conv(INPUT, (3, 6), (3, 1), 1);
    let y = b.relu6(&y);
    let y = b.conv(&y, (6, 6), (3, 1), 6);
    let y = b.relu6(&y);
    let y = b.conv(&y, (6, 1), (1, 1), 1);
    let y = b.node("Sigmoid", &[&y], vec![]);
    let mut input = images(1, [3, 12, 12], 1);
    input[50] = f32::NAN;
    for isa in Isa::available() {
        let network = plan(&b, [3, 12, 12], &y, isa, 1);
        let mut out = vec![0.0; network.output_len()];
        network.run(&mut Vec::new(), &input, &mut out, 1).unwrap();
        assert!(out.iter().any(|v| v.is_nan()), "{isa}");
    }
}

/// Both ways of multiplying bf16 give what loops over rounded values give, and the whole network the same bits for any
/// batch and thread count.
#[test]
fn products_in_bf16_equal_rounded_loops() {
    use crate::isa::half::{Half, Products, SIDE, Source};
    let round = |v: f32| half::bf16::from_f32(v).to_f32();
    for half in Half::available() {
        for (cin, columns, taps, pixels, seed) in [
            (3, 5, 3, 7, 1),
            (16, 16, 3, 40, 2),
            (33, 40, 1, 31, 3),
            (64, 100, 2, 1, 4),
            (10, 70, 9, 65, 5),
        ] {
            let mut noise = builder::Noise::new(seed);
            let (pixel, tap) = (cin, (pixels + 3) * cin);
            let values = noise.list(taps * tap, 1.0);
            let matrix = noise.list(taps * 2 * cin * columns, 0.5);
            // Two neighbouring pixels per tap, as a kernel two wide.
            let len = 2 * cin;
            let run = crate::pack::Run {
                source: 0,
                dy: 0,
                dx: 0,
                taps,
                along: crate::pack::Along::Rows(1),
                from: 0,
                len,
            };
            let packed = crate::pack::HalfPacked::new(columns, &[run], &matrix);
            let mut rounded = vec![0; values.len() + 2 * SIDE * pixel + 32 + pixels * pixel];
            half.round(&values, &mut rounded[..values.len()]);
            for panel in &packed.panels {
                let wide = panel.tiles * SIDE;
                let mut sums = vec![f32::NAN; Products::computed(pixels) * wide];
                half.products(Products {
                    values: &rounded,
                    sources: &[Source { at: 0, pixel, tap, taps, len }],
                    pixels,
                    weights: packed.weights(panel),
                    tiles: panel.tiles,
                    sums: &mut sums,
                });
                for x in 0..pixels {
                    for n in 0..panel.columns {
                        let mut want = 0.0_f64;
                        for t in 0..taps {
                            for k in 0..len {
                                let a = round(values[t * tap + x * pixel + k]);
                                let b = round(matrix[(t * len + k) * columns + panel.column + n]);
                                want += f64::from(a) * f64::from(b);
                            }
                        }
                        let off = (f64::from(sums[x * wide + n]) - want).abs();
                        assert!(off < 1e-4, "{half:?}: {x}, {n}: off by {off}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_decoder_in_bf16_is_near_f32_and_has_the_same_bits_in_any_batch() {
    let mut b = Builder::new(11);
    let fine = b.conv(INPUT, (3, 24), (3, 1), 1);
    let coarse = b.conv(INPUT, (3, 40), (3, 2), 1);
    let up = b.twice(&coarse);
    let cat = b.node("Concat", &[&up, &fine], vec![int("axis", 1)]);
    let y = b.conv(&cat, (64, 40), (3, 1), 1);
    let y = b.node("Relu", &[&y], vec![]);
    let y = b.conv(&y, (40, 24), (3, 1), 1);
    let y = b.node("Add", &[&y, &fine], vec![]);
    let y = b.node("Sigmoid", &[&y], vec![]);
    let (shape, n) = ([3, 30, 44], 3);
    let input = images(n, shape, 5);
    let run = |from: Option<&str>, together: usize, threads: usize, input: &[f32]| {
        let options =
            PlanOptions { together, bf16_from: from, ..PlanOptions::new(INPUT, shape, &y) };
        let network = Network::plan(b.file().as_slice(), &options)?;
        let mut out = vec![0.0; input.len() / network.input_len() * network.output_len()];
        network.run(&mut Vec::new(), input, &mut out, threads).unwrap();
        Ok::<_, PlanError>(out)
    };
    let plain = run(None, 1, 1, &input).unwrap();
    let e = run(Some("nowhere"), 1, 1, &input).unwrap_err().to_string();
    assert!(e.contains("nowhere"), "{e}");
    if !crate::network::bf16() {
        assert_eq!(run(Some(&up), 1, 1, &input).unwrap_err(), PlanError::NoBf16);
        return;
    }
    let half = run(Some(&up), 1, 1, &input).unwrap();
    let off = half.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off > 1e-6 && off < 2e-2, "off by {off}");
    assert_eq!(half, run(Some(&up), 2, 2, &input).unwrap());
    let one = half.len() / n;
    assert_eq!(half[2 * one..], run(Some(&up), 4, 1, &input[2 * 3 * 30 * 44..]).unwrap());
}

/// Where inputs and weights are bf16 already, only the order of the sums differs: in rows, in pixels of all images side
/// by side, and gathered.
#[test]
fn each_form_of_a_convolution_is_exact_in_bf16() {
    if !crate::network::bf16() {
        return;
    }
    let round = |v: &mut f32| *v = half::bf16::from_f32(*v).to_f32();
    // Channels, kernel and stride, size of the map, whether the input is added.
    for ((cin, cout), (k, s), (h, w), residual) in [
        ((24, 24), (3, 1), (30, 44), true),
        ((40, 40), (1, 1), (24, 24), true),
        ((33, 70), (1, 1), (17, 19), false),
        ((48, 48), (3, 1), (14, 10), true),
        ((20, 50), (3, 2), (13, 9), false),
        ((64, 36), (1, 2), (24, 24), false),
    ] {
        let mut b = Builder::new(12);
        let y = b.conv(INPUT, (cin, cout), (k, s), 1);
        let y = if residual { b.node("Add", &[&y, INPUT], vec![]) } else { y };
        let y = b.node("Relu", &[&y], vec![]);
        b.graph.initializer[0].float_data.iter_mut().for_each(round);
        let (shape, n) = ([cin, h, w], 5);
        let mut input = images(n, shape, 9);
        input.iter_mut().for_each(round);
        let run = |from: Option<&str>, together: usize, threads: usize| {
            let options =
                PlanOptions { together, bf16_from: from, ..PlanOptions::new(INPUT, shape, &y) };
            let network = Network::plan(b.file().as_slice(), &options).unwrap();
            let mut out = vec![f32::NAN; n * network.output_len()];
            network.run(&mut Vec::new(), &input, &mut out, threads).unwrap();
            (out, network.weight_bytes())
        };
        let ((plain, bytes), (exact, more)) = (run(None, 1, 1), run(Some(INPUT), 1, 1));
        assert!(more < bytes, "half of the bytes: {more} of {bytes}");
        let off = exact.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5 && plain.iter().any(|v| *v > 0.5), "{cin}, {k}: off by {off}");
        for (together, threads) in [(2, 1), (4, 3)] {
            assert_eq!(run(Some(INPUT), together, threads).0, exact, "{cin}, {k}");
        }
    }
}

/// Dot products of bf16 do twice the products of f32, and tiles of 4 x 4 leave a quarter of them, of 3 x 3 a third.
#[test]
fn in_bf16_a_convolution_is_transformed_in_f32_where_that_is_faster() {
    use crate::isa::half::Half;
    let Some(half) = Half::best() else { return };
    let outruns = |tile| half.outruns(tile);
    assert!(outruns(crate::isa::Tile::Two));
    let mut b = Builder::new(13);
    let y = b.conv(INPUT, (40, 40), (3, 1), 1);
    let (shape, n) = ([40, 24, 16], 3);
    let input = images(n, shape, 9);
    let run = |from: Option<&str>| {
        let options = PlanOptions { bf16_from: from, ..PlanOptions::new(INPUT, shape, &y) };
        let network = Network::plan(b.file().as_slice(), &options).unwrap();
        let mut out = vec![f32::NAN; n * network.output_len()];
        network.run(&mut Vec::new(), &input, &mut out, 1).unwrap();
        out
    };
    let equal = run(None) == run(Some(INPUT));
    assert_ne!(equal, outruns(crate::isa::Tile::Four), "{half:?}");
}

#[test]
fn buffers_of_another_length_are_refused() {
    let mut b = Builder::new(6);
    let y = b.conv(INPUT, (3, 2), (1, 1), 1);
    let network = plan(&b, [3, 4, 4], &y, Isa::best(), 1);
    let (i, o) = (network.input_len(), network.output_len());
    let run =
        |i: usize, o: usize| network.run(&mut Vec::new(), &vec![0.0; i], &mut vec![0.0; o], 1);
    assert!(run(i, o).is_ok() && run(0, 0).is_ok());
    assert!(run(i + 1, o).is_err() && run(2 * i, o).is_err());
}
