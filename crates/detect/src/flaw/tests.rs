use super::*;

fn squares(window: u32, stride: u32, mpp: f64) -> Squares {
    Squares::new(Grid::new(window, stride).unwrap(), Mpp::new(mpp).unwrap())
}

/// Pink tissue with dark spots every 32 px, on soft tissue every 128 px; `soft` px wide are their edges.
fn spotted(side: usize, soft: f64) -> RgbTile {
    let every = if soft > 10.0 { 128 } else { 32 };
    let half = f64::from(every) / 2.0;
    let mut data = Vec::with_capacity(3 * side * side);
    for y in 0..side {
        for x in 0..side {
            let from = |v: usize| f64::from(v as u32 % every) - half;
            let inside = ((half / 2.0 - from(x).hypot(from(y))) / soft + 0.5).clamp(0.0, 1.0);
            let mix = |a: f64, b: f64| (a + (b - a) * inside).round() as u8;
            data.extend([mix(225.0, 90.0), mix(170.0, 60.0), mix(205.0, 130.0)]);
        }
    }
    RgbTile::new(side, side, data)
}

fn paint(tile: &mut RgbTile, (x0, y0): (usize, usize), (w, h): (usize, usize), rgb: [u8; 3]) {
    for y in y0..y0 + h {
        for x in x0..x0 + w {
            let at = 3 * (y * tile.width + x);
            tile.data[at..at + 3].copy_from_slice(&rgb);
        }
    }
}

#[test]
fn squares_are_whole_parts_of_the_stride() {
    let s = squares(512, 400, 0.25);
    assert_eq!((s.side, s.per_stride, s.across, s.pool, s.far), (200, 2, 3, 2, 8));
    let s = squares(512, 400, 0.5);
    assert_eq!((s.side, s.per_stride, s.across, s.pool, s.far), (100, 4, 6, 1, 8));
    // Strides without a fitting part, and windows smaller than a square.
    let s = squares(640, 511, 0.25);
    assert_eq!((s.side, s.across), (511, 2));
    let s = squares(8, 5, 0.25);
    assert_eq!((s.side, s.per_stride, s.across), (5, 1, 2));
}

#[test]
fn what_is_sharp_is_sound_and_what_is_soft_is_out_of_focus() {
    for (mpp, unit) in [(0.25, 1.0), (0.5, 0.5)] {
        let s = squares(512, 400, mpp);
        let judge = |soft: f64| s.classify(&spotted(512, soft), (512, 512));
        assert_eq!(judge(1.0), None);
        assert_eq!(judge(3.0 * unit), None);
        let soft = judge(60.0).unwrap();
        // The last 12 px of a window are too few to show at 0.5 um/px.
        let (n, whole) = (s.across as usize, 512 / s.side as usize);
        let flagged = soft.0.iter().enumerate().filter(|(i, _)| (i % n).max(i / n) < whole);
        assert!(flagged.clone().count() > 0 && { flagged }.all(|t| *t.1 == Some(Flaw::OutOfFocus)));
    }
    // An even ground is neither: nothing on it could be sharp.
    let s = squares(512, 400, 0.25);
    assert_eq!(s.classify(&RgbTile::filled(512, 512, [225, 170, 205]), (512, 512)), None);
    assert_eq!(s.classify(&RgbTile::filled(512, 512, [255; 3]), (512, 512)), None);
    // What is outside the slide means nothing.
    assert_eq!(s.classify(&spotted(512, 60.0), (0, 512)), None);
    let edge = s.classify(&spotted(512, 60.0), (150, 512)).unwrap();
    let first = |row: usize| (edge.0[3 * row], edge.0[3 * row + 1], edge.0[3 * row + 2]);
    assert_eq!(first(0), (Some(Flaw::OutOfFocus), None, None));
}

#[test]
fn pens_have_colours_that_no_stain_has() {
    let is = |rgb| colour(rgb);
    let [pen, dirt, stain] = [[true, false], [false, true], [false, false]];
    for rgb in [[40, 140, 70], [20, 120, 180], [30, 70, 200], [230, 40, 45], [230, 220, 60]] {
        assert_eq!(is(rgb), pen, "{rgb:?}");
    }
    for rgb in [[40, 40, 42], [0, 0, 0], [70, 60, 66]] {
        assert_eq!(is(rgb), dirt, "{rgb:?}");
    }
    // Haematoxylin, eosin, erythrocytes, brown pigment, glass.
    for rgb in [
        [70, 40, 110],
        [110, 90, 190],
        [225, 140, 190],
        [215, 70, 100],
        [150, 100, 60],
        [250, 250, 250],
        [80, 75, 78],
    ] {
        assert_eq!(is(rgb), stain, "{rgb:?}");
    }
}

#[test]
fn a_square_has_one_flaw_and_its_neighbours_none() {
    let s = squares(512, 400, 0.25);
    let mut tile = spotted(512, 1.0);
    paint(&mut tile, (210, 10), (150, 150), [30, 120, 60]);
    paint(&mut tile, (10, 210), (100, 100), [30, 30, 32]);
    let Verdicts(all) = s.classify(&tile, (512, 512)).unwrap();
    let expected = [None, Some(Flaw::Pen), None, Some(Flaw::Dirt)];
    assert_eq!(all[..4], expected);
    assert!(all[4..].iter().all(Option::is_none));
    // A speck is not a dirty area.
    let mut tile = spotted(512, 1.0);
    paint(&mut tile, (10, 210), (40, 40), [30, 30, 32]);
    assert_eq!(s.classify(&tile, (512, 512)), None);
}

fn frame(width: u32, height: u32) -> WorkingFrame {
    WorkingFrame {
        frame: Frame { width, height },
        scale: (2.0, 2.0),
        extent: (f64::from(width), f64::from(height)),
        pixel_mm2: 0.25e-3 * 0.25e-3,
    }
}

#[test]
fn overlaps_count_once_and_what_no_window_read_not_at_all() {
    let (s, grid) = (squares(512, 400, 0.25), Grid::new(512, 400).unwrap());
    let blurred = || Verdicts(vec![Some(Flaw::OutOfFocus); 9]);
    let at = |row, col| WindowAt { row, col };
    let pixel = 0.25e-3_f64.powi(2);
    let area = |read: &[WindowAt], flawed: &[WindowAt]| {
        let read = read.iter().copied().collect();
        let flawed = flawed.iter().map(|w| (*w, blurred()).into()).collect();
        let all = FlawMap::new(s, grid, &read, flawed).list(&frame(912, 912), None);
        assert_eq!(all.side_px, (400.0, 400.0));
        (all.area(Flaw::OutOfFocus).0 / pixel).round()
    };
    let four = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
    assert_eq!(area(&four, &four), 912.0 * 912.0);
    // A sound neighbour's own squares are its own.
    assert_eq!(area(&four, &[at(0, 0)]), 400.0 * 400.0);
    // Without neighbours a window answers for all it read.
    assert_eq!(area(&[at(0, 0)], &[at(0, 0)]), 512.0 * 512.0);
    assert_eq!(area(&[at(0, 0)], &four), 512.0 * 512.0);
    let read = four.into_iter().collect();
    let map = FlawMap::new(s, grid, &read, vec![(at(0, 1), blurred()).into()]);
    assert_eq!(map.at(399.0, 10.0), None);
    assert_eq!(map.at(400.0, 10.0), Some(Flaw::OutOfFocus));
    assert_eq!(map.at(900.0, 399.0), Some(Flaw::OutOfFocus));
    assert_eq!(map.at(900.0, 400.0), None);
    assert_eq!(map.at(-1.0, 5000.0), None);
}
