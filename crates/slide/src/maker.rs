//! Who made the scanner of a slide, by what its file states.

use std::collections::BTreeMap;

/// Words that name a maker, lower case, and the maker; of several the first in a text's order of fields counts.
const MAKERS: [(&str, &str); 21] = [
    ("gt450", "Aperio"),
    ("aperio", "Aperio"),
    ("scanscope", "Aperio"),
    ("hamamatsu", "Hamamatsu"),
    ("nanozoomer", "Hamamatsu"),
    ("3dhistech", "3DHISTECH"),
    ("pannoramic", "3DHISTECH"),
    ("mirax", "3DHISTECH"),
    ("philips", "Philips"),
    ("ventana", "Ventana"),
    ("roche", "Ventana"),
    ("zeiss", "Zeiss"),
    ("olympus", "Olympus"),
    ("evident", "Olympus"),
    ("huron", "Huron"),
    ("grundium", "Grundium"),
    ("motic", "Motic"),
    ("omnyx", "Omnyx"),
    ("sakura", "Sakura"),
    ("trestle", "Trestle"),
    ("leica", "Leica"),
];

/// Fields that name a maker, the most specific first.
const FIELDS: [&str; 7] = [
    "dicom.ManufacturerModelName",
    "dicom.Manufacturer",
    "tiff.Make",
    "tiff.Model",
    "openslide.vendor",
    "tiff.Software",
    "tiff.ImageDescription",
];

/// The maker that one of the fields names; none where no field does, as in a file that was converted.
pub(crate) fn maker(properties: &BTreeMap<String, String>, vendor: &str) -> Option<&'static str> {
    let named = |text: &str| {
        let text = text.to_lowercase();
        MAKERS.iter().find(|(word, _)| text.contains(word)).map(|(_, maker)| *maker)
    };
    // Of a description only its first line is about the scanner: what follows may be free text.
    let texts = FIELDS.iter().filter_map(|f| properties.get(*f));
    texts.filter_map(|t| t.lines().next()).find_map(named).or_else(|| named(vendor))
}

#[cfg(test)]
mod tests {
    use super::maker;
    use std::collections::BTreeMap;

    #[test]
    fn makers_are_known_by_their_words() {
        let of = |fields: &[(&str, &str)], vendor: &str| {
            let all: BTreeMap<String, String> =
                fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            maker(&all, vendor)
        };
        let description = "Aperio Leica Biosystems GT450 v1.0.1 \nhamamatsu slide scanned again";
        for (fields, vendor, expected) in [
            (vec![("tiff.ImageDescription", description)], "aperio", Some("Aperio")),
            (
                vec![("tiff.Make", "Hamamatsu"), ("tiff.Software", "x")],
                "generic-tiff",
                Some("Hamamatsu"),
            ),
            (vec![("dicom.Manufacturer", "Leica Biosystems")], "dicom", Some("Leica")),
            (
                vec![
                    ("dicom.ManufacturerModelName", "Aperio GT 450 DX"),
                    ("dicom.Manufacturer", "Leica Biosystems"),
                ],
                "dicom",
                Some("Aperio"),
            ),
            (vec![("openslide.vendor", "mirax")], "mirax", Some("3DHISTECH")),
            (vec![("tiff.Software", "libvips")], "generic-tiff", None),
            (vec![], "flat", None),
            (vec![], "aperio", Some("Aperio")),
        ] {
            assert_eq!(of(&fields, vendor), expected, "{fields:?} {vendor}");
        }
    }
}
