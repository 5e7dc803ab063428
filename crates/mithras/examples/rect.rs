//! Draws one rectangle of a drawn slide as PNG: x y w h seed out.png
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n = |i: usize| a[i].parse::<i64>().unwrap();
    let spec =
        mithras::demo::Spec::new(n(1) as u32, n(2) as u32, n(7) as u64, n(8) as usize).unwrap();
    let layout = mithras::demo::Layout::new(spec).unwrap();
    let t = std::time::Instant::now();
    let tile = mithras::demo::draw(&layout, n(3), n(4), n(5) as usize, n(6) as usize);
    eprintln!("{:?}", t.elapsed());
    for p in layout.truth() {
        println!("{:.0},{:.0},{}", p.x_px, p.y_px, p.phase);
    }
    image::save_buffer(
        &a[9],
        &tile.data,
        tile.width as u32,
        tile.height as u32,
        image::ColorType::Rgb8,
    )
    .unwrap();
}
