//! Every operator again as plain loops in f64 over `[C,H,W]`, straight from its definition in ONNX.

use proto::{GraphProto, NodeProto, TensorProto};
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(super) struct Plane {
    pub c: usize,
    pub h: usize,
    pub w: usize,
    pub v: Vec<f64>,
}

impl Plane {
    fn at(&self, c: usize, y: usize, x: usize) -> f64 {
        self.v[(c * self.h + y) * self.w + x]
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { v: self.v.iter().map(|v| f(*v)).collect(), ..*self }
    }

    fn build(c: usize, h: usize, w: usize, f: impl Fn(usize, usize, usize) -> f64) -> Self {
        let v = (0..c * h * w).map(|i| f(i / (h * w), i / w % h, i % w)).collect();
        Self { c, h, w, v }
    }
}

/// The value of `output` for one image.
pub(super) fn run(graph: &GraphProto, input: (&str, Plane), output: &str) -> Plane {
    let constants: HashMap<&str, &TensorProto> =
        graph.initializer.iter().map(|s| (s.name.as_str(), s)).collect();
    let mut values = HashMap::from([(input.0.to_string(), input.1)]);
    for node in &graph.node {
        let made = evaluate(node, &values, &constants);
        values.insert(node.output[0].clone(), made);
    }
    values[output].clone()
}

#[expect(clippy::too_many_lines, reason = "one arm for each operator")]
fn evaluate(
    n: &NodeProto,
    values: &HashMap<String, Plane>,
    constants: &HashMap<&str, &TensorProto>,
) -> Plane {
    let attribute = |name: &str| n.attribute.iter().find(|a| a.name == name);
    let list = |name: &str| attribute(name).map(|a| a.ints.clone());
    let word = |name: &str| attribute(name).map(|a| String::from_utf8_lossy(&a.s).to_string());
    let number = |name: &str, d: f32| f64::from(attribute(name).map_or(d, |a| a.f));
    let constant = |i: usize| {
        let stored = n.input.get(i).and_then(|k| constants.get(k.as_str()));
        stored.map(|s| s.float_data.iter().map(|v| f64::from(*v)).collect::<Vec<_>>())
    };
    let dims = |i: usize| {
        constants[n.input[i].as_str()].dims.iter().map(|d| *d as usize).collect::<Vec<_>>()
    };
    let x = values.get(&n.input[0]);
    let pads = list("pads").unwrap_or(vec![0; 4]);
    let strides = list("strides").unwrap_or(vec![1, 1]);
    let dilations = list("dilations").unwrap_or(vec![1, 1]);
    // Positions under a window: output index, tap -> input index if inside.
    let inside = |axis: usize, o: usize, k: usize, size: usize| {
        let i = o as i64 * strides[axis] + k as i64 * dilations[axis] - pads[axis];
        (0..size as i64).contains(&i).then_some(i as usize)
    };
    let side = |axis: usize, size: usize, k: usize| {
        let padded = size as i64 + pads[axis] + pads[axis + 2];
        ((padded - dilations[axis] * (k as i64 - 1) - 1) / strides[axis] + 1) as usize
    };
    match n.op_type.as_str() {
        "Conv" => {
            let x = x.unwrap();
            let (d, w) = (dims(1), constant(1).unwrap());
            let (cout, cin, kh, kw) = (d[0], d[1], d[2], d[3]);
            let groups = x.c / cin;
            let bias = constant(2).unwrap_or(vec![0.0; cout]);
            Plane::build(cout, side(0, x.h, kh), side(1, x.w, kw), |o, y, xx| {
                let mut sum = bias[o];
                for i in 0..cin {
                    for ky in 0..kh {
                        for kx in 0..kw {
                            if let (Some(sy), Some(sx)) =
                                (inside(0, y, ky, x.h), inside(1, xx, kx, x.w))
                            {
                                let channel = o / (cout / groups) * cin + i;
                                sum +=
                                    w[((o * cin + i) * kh + ky) * kw + kx] * x.at(channel, sy, sx);
                            }
                        }
                    }
                }
                sum
            })
        }
        "BatchNormalization" => {
            let x = x.unwrap();
            let [s, b, m, v] = [1, 2, 3, 4].map(|i| constant(i).unwrap());
            let e = number("epsilon", 1e-5);
            Plane::build(x.c, x.h, x.w, |c, y, xx| {
                (x.at(c, y, xx) - m[c]) / (v[c] + e).sqrt() * s[c] + b[c]
            })
        }
        "Relu" => x.unwrap().map(|v| v.max(0.0)),
        "Clip" => {
            let (low, high) = (constant(1).unwrap()[0], constant(2).unwrap()[0]);
            x.unwrap().map(|v| v.max(low).min(high))
        }
        "Sigmoid" => x.unwrap().map(|v| 1.0 / (1.0 + (-v).exp())),
        "Tanh" => x.unwrap().map(f64::tanh),
        "HardSwish" => x.unwrap().map(|v| v * (v / 6.0 + 0.5).clamp(0.0, 1.0)),
        "HardSigmoid" => {
            let (a, b) = (number("alpha", 0.2), number("beta", 0.5));
            x.unwrap().map(|v| (a * v + b).clamp(0.0, 1.0))
        }
        "LeakyRelu" => {
            let a = number("alpha", 0.01);
            x.unwrap().map(|v| if v < 0.0 { a * v } else { v })
        }
        "Add" | "Mul" | "Sub" | "Div" => {
            let f = |a: f64, b: f64| match n.op_type.as_str() {
                "Add" => a + b,
                "Sub" => a - b,
                "Mul" => a * b,
                _ => a / b,
            };
            let get = |i: usize, like: &Plane| match values.get(&n.input[i]) {
                Some(p) if p.v.len() == like.v.len() => p.clone(),
                Some(p) => Plane::build(like.c, like.h, like.w, |c, _, _| p.v[c]),
                None => {
                    let v = constant(i).unwrap();
                    Plane::build(like.c, like.h, like.w, |c, _, _| {
                        v[if v.len() == 1 { 0 } else { c }]
                    })
                }
            };
            let sizes = [0, 1].map(|i| values.get(&n.input[i]));
            let like = sizes.into_iter().flatten().max_by_key(|p| p.v.len()).unwrap();
            let (a, b) = (get(0, like), get(1, like));
            let v = a.v.iter().zip(&b.v).map(|(a, b)| f(*a, *b)).collect();
            Plane { v, ..*like }
        }
        "Concat" => {
            let all: Vec<&Plane> = n.input.iter().map(|i| &values[i]).collect();
            let v = all.iter().flat_map(|p| p.v.clone()).collect();
            Plane { c: all.iter().map(|p| p.c).sum(), h: all[0].h, w: all[0].w, v }
        }
        "Resize" => {
            let x = x.unwrap();
            let scales = constant(2).unwrap();
            let (sy, sx) = (scales[2], scales[3]);
            let (h, w) = ((x.h as f64 * sy).floor() as usize, (x.w as f64 * sx).floor() as usize);
            let mode = word("mode").unwrap_or("nearest".into());
            let place = |i: usize, s: f64, n: usize, out: usize| {
                let i = i as f64;
                match word("coordinate_transformation_mode").as_deref().unwrap_or("half_pixel") {
                    "asymmetric" => i / s,
                    "align_corners" if out == 1 => 0.0,
                    "align_corners" => i * (n as f64 - 1.0) / (out as f64 - 1.0),
                    _ => (i + 0.5) / s - 0.5,
                }
            };
            Plane::build(x.c, h, w, |c, y, xx| {
                let (py, px) = (place(y, sy, x.h, h), place(xx, sx, x.w, w));
                if mode == "nearest" {
                    let round = |v: f64, n: usize| {
                        let r =
                            match word("nearest_mode").as_deref().unwrap_or("round_prefer_floor") {
                                "floor" => v.floor(),
                                "ceil" => v.ceil(),
                                "round_prefer_ceil" => (v + 0.5).floor(),
                                _ => (v - 0.5).ceil(),
                            };
                        r.clamp(0.0, n as f64 - 1.0) as usize
                    };
                    return x.at(c, round(py, x.h), round(px, x.w));
                }
                let (py, px) = (py.clamp(0.0, x.h as f64 - 1.0), px.clamp(0.0, x.w as f64 - 1.0));
                let (y0, x0) = (py as usize, px as usize);
                let (y1, x1) = ((y0 + 1).min(x.h - 1), (x0 + 1).min(x.w - 1));
                let (fy, fx) = (py - y0 as f64, px - x0 as f64);
                (x.at(c, y0, x0) * (1.0 - fx) + x.at(c, y0, x1) * fx) * (1.0 - fy)
                    + (x.at(c, y1, x0) * (1.0 - fx) + x.at(c, y1, x1) * fx) * fy
            })
        }
        "MaxPool" | "AveragePool" => {
            let x = x.unwrap();
            let k: Vec<usize> = list("kernel_shape").unwrap().iter().map(|v| *v as usize).collect();
            let padded = attribute("count_include_pad").is_some_and(|a| a.i != 0);
            Plane::build(x.c, side(0, x.h, k[0]), side(1, x.w, k[1]), |c, y, xx| {
                let mut all = Vec::new();
                for ky in 0..k[0] {
                    for kx in 0..k[1] {
                        if let (Some(sy), Some(sx)) =
                            (inside(0, y, ky, x.h), inside(1, xx, kx, x.w))
                        {
                            all.push(x.at(c, sy, sx));
                        }
                    }
                }
                match n.op_type.as_str() {
                    "MaxPool" => all.into_iter().fold(f64::NEG_INFINITY, f64::max),
                    _ => {
                        all.iter().sum::<f64>()
                            / if padded { k[0] * k[1] } else { all.len() } as f64
                    }
                }
            })
        }
        "GlobalAveragePool" | "ReduceMean" => {
            let x = x.unwrap();
            let n = x.h * x.w;
            let v = x.v.chunks(n).map(|p| p.iter().sum::<f64>() / n as f64).collect();
            Plane { h: 1, w: 1, v, c: x.c }
        }
        "Flatten" => {
            let x = x.unwrap();
            Plane { c: x.v.len(), h: 1, w: 1, v: x.v.clone() }
        }
        "MatMul" | "Gemm" => {
            let x = x.unwrap();
            let (d, m) = (dims(1), constant(1).unwrap());
            let turned = attribute("transB").is_some_and(|a| a.i != 0);
            let out = if turned { d[0] } else { d[1] };
            let bias = constant(2).unwrap_or(vec![0.0; out]);
            let at = |k: usize, o: usize| if turned { m[o * d[1] + k] } else { m[k * d[1] + o] };
            Plane::build(out, 1, 1, |o, _, _| {
                bias[o] + (0..x.c).map(|k| x.v[k] * at(k, o)).sum::<f64>()
            })
        }
        "Softmax" => {
            let x = x.unwrap();
            let most = |y, xx| (0..x.c).map(|c| x.at(c, y, xx)).fold(f64::MIN, f64::max);
            let sum = |y, xx| (0..x.c).map(|c| (x.at(c, y, xx) - most(y, xx)).exp()).sum::<f64>();
            Plane::build(x.c, x.h, x.w, |c, y, xx| {
                (x.at(c, y, xx) - most(y, xx)).exp() / sum(y, xx)
            })
        }
        other => panic!("no loops for {other}"),
    }
}
