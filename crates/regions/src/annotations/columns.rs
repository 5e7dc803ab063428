//! Names of the columns of boxes and labels, as annotation programs write them.

/// Left edge of a box.
pub const X0: &[&str] = &["xmin", "x_min", "x1", "x0", "left", "minx", "bbox_x1"];
/// Upper edge of a box.
pub const Y0: &[&str] = &["ymin", "y_min", "y1", "y0", "top", "miny", "bbox_y1"];
/// Right edge of a box.
pub const X1: &[&str] = &["xmax", "x_max", "x2", "right", "maxx", "bbox_x2"];
/// Lower edge of a box.
pub const Y1: &[&str] = &["ymax", "y_max", "y2", "bottom", "maxy", "bbox_y2"];
/// Width of a box.
pub const W: &[&str] = &["w", "width", "bbox_width", "box_width", "bbox_w", "box_w"];
/// Height of a box.
pub const H: &[&str] = &["h", "height", "bbox_height", "box_height", "bbox_h", "box_h"];
/// The class of an annotation, as a word.
pub const LABEL: &[&str] = &[
    "label",
    "class",
    "category",
    "class_name",
    "category_name",
    "majority",
    "agreed",
    "agreed_class",
    "type",
    "kind",
    "annotation",
    "classification",
];
/// Whether an annotation is a mitotic figure: yes or no.
pub const FLAG: &[&str] =
    &["mitotic", "is_mitotic", "is_mitosis", "mitosis", "is_mf", "mitotic_figure"];
/// The slide that an image was cut from.
pub const SLIDE: &[&str] = &["slide", "slide_id", "slide_name", "wsi"];
/// Columns of this program's own tables of labels that are of no use to who reads them as labels: the phase of a drawn
/// figure, and what an import notes of each record.
pub const OWN: &[&str] = &["phase", "record", "category", "clipped", "votes"];
