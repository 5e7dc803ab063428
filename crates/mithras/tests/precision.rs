//! bf16 finds the figures that f32 finds.

use std::path::Path;
use std::process::Command;

/// One row of `detections.csv`.
struct Row {
    at: [f64; 2],
    s_seg: f64,
    accepted: bool,
}

fn rows(file: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let column = |name| names.iter().position(|n| *n == name).unwrap();
    let [x, y, s, a] = ["x_px", "y_px", "s_seg", "accepted"].map(column);
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    lines
        .map(|l| Row {
            at: [number(l[x]), number(l[y])],
            s_seg: number(l[s]),
            accepted: l[a] == "true",
        })
        .collect()
}

#[test]
fn bf16_accepts_the_figures_of_f32_on_real_frames() {
    let Some(frames) = testkit::data("icpr2012/frames") else { return };
    for engine in ["openvino", "torch"] {
        compare(&frames, engine);
    }
}

fn compare(frames: &Path, engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for precision in ["f32", "bf16"] {
        let out = dir.path().join(precision);
        let run = Command::new(env!("CARGO_BIN_EXE_mithras"))
            .args(["detect", "--mpp", "0.2456", "--engine", engine, "--quiet"])
            .args(["--precision", precision, "--out"])
            .arg(&out)
            .args(["A00_02", "A02_09"].map(|name| frames.join(name).with_extension("jpg")))
            .output()
            .unwrap();
        if !run.status.success() {
            let error = String::from_utf8_lossy(&run.stderr);
            let missing = ["openvino:", "bf16 instructions", "no libtorch"];
            assert!(missing.iter().any(|m| error.contains(m)), "{error}");
            eprintln!("SKIPPED: {error}");
            return;
        }
        found.push(["A00_02", "A02_09"].map(|name| rows(&out.join(name).join("detections.csv"))));
    }
    let (f32s, bf16s) = (found[0].iter().flatten(), found[1].iter().flatten());
    let accepted = |rows: &[Vec<Row>]| rows.iter().flatten().filter(|r| r.accepted).count();
    assert!(accepted(&found[0]) > 0);
    assert_eq!(f32s.clone().count(), bf16s.clone().count());
    for (a, b) in f32s.zip(bf16s) {
        let apart = (a.at[0] - b.at[0]).hypot(a.at[1] - b.at[1]);
        assert!(apart <= 1.0, "{apart} px at {:?}", a.at);
        assert!((a.s_seg - b.s_seg).abs() <= 6e-3, "{} {} at {:?}", a.s_seg, b.s_seg, a.at);
        assert_eq!(a.accepted, b.accepted, "at {:?}", a.at);
        if a.accepted {
            assert!((a.s_seg - b.s_seg).abs() <= 5e-3, "{} {}", a.s_seg, b.s_seg);
        }
    }
}
