//! Areas of regions against shapely (`golden/areas.py`).

use roi::Area;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    include: Vec<Vec<Vec<[f64; 2]>>>,
    exclude: Vec<Vec<Vec<[f64; 2]>>>,
    each: Vec<f64>,
    all: f64,
    excluded: f64,
}

#[test]
fn areas_are_those_of_shapely() {
    let golden: Golden = serde_json::from_str(include_str!("golden/areas.json")).unwrap();
    assert_eq!(golden.cases.len(), 40);
    let slide = Area::rectangle([0.0, 0.0], [100_000.0, 100_000.0]);
    let polygon = |rings: &Vec<Vec<[f64; 2]>>| Area::polygon(&rings[0], &rings[1..]);
    let near = |got: f64, expected: f64, what: &str| {
        assert!(
            (got - expected).abs() <= 1e-9 * expected.max(1e6),
            "{what}: {got} is not {expected}"
        );
    };
    for (i, case) in golden.cases.iter().enumerate() {
        let out = case.exclude.iter().fold(Area::default(), |a, r| a.or(&polygon(r))).and(&slide);
        near(out.px2(), case.excluded, &format!("case {i}, excluded"));
        let each: Vec<Area> =
            case.include.iter().map(|r| polygon(r).and(&slide).minus(&out)).collect();
        for (area, expected) in each.iter().zip(&case.each) {
            near(area.px2(), *expected, &format!("case {i}"));
        }
        let all = each.iter().fold(Area::default(), |a, r| a.or(r));
        near(all.px2(), case.all, &format!("case {i}, together"));
    }
}
