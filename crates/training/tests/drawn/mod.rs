//! Drawn images with figures and look-alikes at known places.

/// Side of an image at 0.25 um/px.
pub const SIDE: u32 = 512;

/// The positions of figures and look-alikes on the drawn image of this number, px at 0.25 um/px.
pub fn places(number: u32) -> Vec<(u32, u32, bool)> {
    (0..12)
        .map(|i| {
            let (column, row) = (i % 4, i / 4);
            let shift = (number * 17 + i * 29) % 40;
            (60 + 120 * column + shift, 80 + 150 * row + shift / 2, i % 3 != 2)
        })
        .collect()
}

/// Pink tissue with dark round figures and paler, bluer look-alikes, at `coarse` times 0.25 um/px.
pub fn drawn(number: u32, coarse: u32) -> image::RgbImage {
    let side = SIDE / coarse;
    let mut image = image::RgbImage::from_fn(side, side, |x, y| {
        let grain = ((x * 7919 + y * 104_729 + number * 31) % 23) as u8;
        image::Rgb([215 + grain % 12, 165 + grain, 195 + grain / 2])
    });
    for (cx, cy, figure) in places(number) {
        let (cx, cy) = (cx / coarse, cy / coarse);
        let radius = if figure { 12_i64 } else { 10 } / i64::from(coarse);
        for y in -radius..=radius {
            for x in -radius..=radius {
                if x * x + y * y <= radius * radius {
                    let at = |c: u32, d: i64| (i64::from(c) + d) as u32;
                    let colour = if figure { [45, 20, 70] } else { [120, 110, 190] };
                    image.put_pixel(at(cx, x), at(cy, y), image::Rgb(colour));
                }
            }
        }
    }
    image
}
