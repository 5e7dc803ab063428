//! XML of ASAP and of Aperio ImageScope, distinguished by the root element.

use super::drawn::{broken, is_coordinate};
use super::{Drawn, DrawnFile, Frame};
use crate::area::{Area, Ring};
use crate::error::RegionError;
use roxmltree::{Document, Node};
use std::collections::HashMap;
use std::path::Path;

/// Corners that an ellipse is drawn with: its area is then 0.005 % too small.
const ELLIPSE: usize = 360;

pub(super) fn read(file: &mut DrawnFile, bytes: &[u8]) -> Result<(), RegionError> {
    let path = file.path.clone();
    let text = base::text::utf8(bytes).map_err(|e| broken(&path, e.to_string()))?;
    let doc = Document::parse(text).map_err(|e| broken(&path, format!("is not valid XML: {e}")))?;
    file.frame = Frame::Level0;
    match doc.root_element().tag_name().name() {
        "ASAP_Annotations" => asap(file, &path, doc.root_element()),
        "Annotations" => imagescope(file, &path, doc.root_element()),
        other => {
            Err(broken(&path, format!("is neither ASAP nor ImageScope XML: its root is <{other}>")))
        }
    }
}

fn number(path: &Path, what: &str, text: Option<&str>) -> Result<f64, RegionError> {
    // Some locales write a decimal comma.
    let text = text.unwrap_or_default();
    let value = text.replace(',', ".").parse::<f64>().ok().filter(|v| is_coordinate(*v));
    value.ok_or_else(|| broken(path, format!("{what}: `{text}` is not a number of pixels")))
}

fn corners(path: &Path, what: &str, of: Node<'_, '_>, tag: &str) -> Result<Ring, RegionError> {
    let mut points: Vec<Node<'_, '_>> = of.descendants().filter(|n| n.has_tag_name(tag)).collect();
    // ASAP numbers the corners; scripts write them in any order.
    let orders = points.iter().map(|p| p.attribute("Order")?.trim().parse::<u64>().ok());
    if let Some(orders) = orders.collect::<Option<Vec<u64>>>() {
        let mut ordered: Vec<(u64, Node<'_, '_>)> = orders.into_iter().zip(points).collect();
        ordered.sort_by_key(|(order, _)| *order);
        points = ordered.into_iter().map(|(_, point)| point).collect();
    }
    points
        .into_iter()
        .enumerate()
        .map(|(k, p)| {
            let what = format!("{what}, corner {}", k + 1);
            Ok([number(path, &what, p.attribute("X"))?, number(path, &what, p.attribute("Y"))?])
        })
        .collect()
}

fn asap(file: &mut DrawnFile, path: &Path, root: Node<'_, '_>) -> Result<(), RegionError> {
    file.format = "asap";
    for (i, a) in root.descendants().filter(|n| n.has_tag_name("Annotation")).enumerate() {
        let name = a.attribute("Name").unwrap_or_default();
        let what = match name.trim() {
            "" => format!("annotation {}", i + 1),
            name => format!("annotation {} `{name}`", i + 1),
        };
        match a.attribute("Type").unwrap_or_default() {
            "Dot" | "PointSet" => file.pass_over("points"),
            "Measurement" => file.pass_over("measurements"),
            _ => {
                let ring = corners(path, &what, a, "Coordinate")?;
                let group = a.attribute("PartOfGroup").filter(|g| !g.is_empty() && *g != "None");
                file.take(Drawn {
                    name: name.to_owned(),
                    class: group.unwrap_or_default().to_owned(),
                    area: Area::polygon(&ring, &[]),
                    ..Drawn::default()
                });
            }
        }
    }
    Ok(())
}

fn imagescope(file: &mut DrawnFile, path: &Path, root: Node<'_, '_>) -> Result<(), RegionError> {
    file.format = "imagescope";
    if let Some(mpp) = root.attribute("MicronsPerPixel") {
        let mpp = number(path, "MicronsPerPixel", Some(mpp))?;
        file.mpp = Some(mpp).filter(|v| *v > 0.0);
    }
    for (i, layer) in root.children().filter(|n| n.has_tag_name("Annotation")).enumerate() {
        let attributes: HashMap<&str, &str> = layer
            .descendants()
            .filter(|n| n.has_tag_name("Attribute"))
            .filter_map(|a| Some((a.attribute("Name")?, a.attribute("Value")?)))
            .collect();
        let class = layer.attribute("Name").filter(|n| !n.trim().is_empty());
        let class =
            class.or_else(|| attributes.get("Description").copied()).unwrap_or_default().to_owned();
        for (k, region) in layer.descendants().filter(|n| n.has_tag_name("Region")).enumerate() {
            let what = format!("layer {}, region {}", i + 1, k + 1);
            let ring = corners(path, &what, region, "Vertex")?;
            let area = match (region.attribute("Type").unwrap_or("0"), ring.as_slice()) {
                ("3" | "4", _) => {
                    file.pass_over("arrows and rulers");
                    continue;
                }
                ("5", _) => {
                    file.pass_over("points");
                    continue;
                }
                // Two corners, or four in the order in which they were drawn.
                ("1", [a, b]) => Area::rectangle(*a, *b),
                ("2", [a, b] | [a, _, b, _]) => ellipse(*a, *b),
                _ => Area::polygon(&ring, &[]),
            };
            let name = region.attribute("Text").unwrap_or_default().trim().to_owned();
            let negative = region.attribute("NegativeROA") == Some("1");
            file.take(Drawn { name, class: class.clone(), negative, image: None, area });
        }
    }
    Ok(())
}

/// The ellipse inside an upright rectangle.
fn ellipse([x0, y0]: [f64; 2], [x1, y1]: [f64; 2]) -> Area {
    let (x, y) = (f64::midpoint(x0, x1), f64::midpoint(y0, y1));
    let (rx, ry) = ((x1 - x0).abs() / 2.0, (y1 - y0).abs() / 2.0);
    let corner = |k: usize| {
        let angle = std::f64::consts::TAU * k as f64 / ELLIPSE as f64;
        [x + rx * angle.cos(), y + ry * angle.sin()]
    };
    Area::polygon(&(0..ELLIPSE).map(corner).collect(), &[])
}
