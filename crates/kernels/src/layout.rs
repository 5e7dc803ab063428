//! Where a value's pixels are in its buffer.

use crate::ir::Shape;

/// `[image][row][column][channel]`, with `pad` rows and columns of zeros around each image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub c: usize,
    pub h: usize,
    pub w: usize,
    pub pad: usize,
}

impl Layout {
    pub(crate) fn new(shape: Shape, pad: usize) -> Self {
        Self { c: shape.c, h: shape.h, w: shape.w, pad }
    }

    /// Values between two rows.
    pub(crate) fn row(&self) -> usize {
        (self.w + 2 * self.pad) * self.c
    }

    /// Values between two images.
    pub(crate) fn image(&self) -> usize {
        (self.h + 2 * self.pad) * self.row()
    }

    /// Index of a pixel's first value; the border's pixels have negative or too large coordinates.
    pub(crate) fn at(&self, image: usize, y: isize, x: isize) -> usize {
        let pad = self.pad as isize;
        debug_assert!(y >= -pad && x >= -pad, "({y}, {x}) of a border of {pad}");
        image * self.image() + (y + pad) as usize * self.row() + (x + pad) as usize * self.c
    }

    /// A row without its border.
    pub(crate) fn inner<'a>(&self, data: &'a [f32], image: usize, y: usize) -> &'a [f32] {
        let at = self.at(image, y as isize, 0);
        &data[at..at + self.w * self.c]
    }

    /// A row without its border.
    pub(crate) fn inner_mut<'a>(
        &self,
        data: &'a mut [f32],
        image: usize,
        y: usize,
    ) -> &'a mut [f32] {
        let at = self.at(image, y as isize, 0);
        &mut data[at..at + self.w * self.c]
    }

    /// Sets the border to zero.
    pub(crate) fn clear_border(&self, data: &mut [f32], images: usize) {
        if self.pad == 0 {
            return;
        }
        let (row, side) = (self.row(), self.pad * self.c);
        for image in data[..images * self.image()].chunks_exact_mut(self.image()) {
            let (top, rest) = image.split_at_mut(self.pad * row);
            let (middle, bottom) = rest.split_at_mut(self.h * row);
            top.fill(0.0);
            bottom.fill(0.0);
            for line in middle.chunks_exact_mut(row) {
                line[..side].fill(0.0);
                line[row - side..].fill(0.0);
            }
        }
    }
}
