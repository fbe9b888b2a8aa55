//! A drawing as a PNG picture. The letters come with the program: machines without a screen often have none.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::error::BenchError;

/// Two pixels for each of the drawing: sharp on today's screens and in print.
const SCALE: f32 = 2.0;
const FAMILY: &str = "Roboto";

static LETTERS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut letters = fontdb::Database::new();
    letters.load_font_data(include_bytes!("font/Roboto-Regular.ttf").to_vec());
    letters.load_font_data(include_bytes!("font/Roboto-Medium.ttf").to_vec());
    letters.set_sans_serif_family(FAMILY);
    Arc::new(letters)
});

/// Returns the picture of an SVG; `name` is for the error.
pub(super) fn png(svg: &str, name: &str) -> Result<Vec<u8>, BenchError> {
    let refused = |why: String| BenchError::Refused {
        what: format!("cannot draw `{name}.png`: {why}"),
        hint: Some(format!("`{name}.svg` has the same figure")),
    };
    let options = Options {
        font_family: FAMILY.to_owned(),
        fontdb: Arc::clone(&LETTERS),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|error| refused(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let mut picture = size
        .and_then(|size| Pixmap::new(size.width(), size.height()))
        .ok_or_else(|| refused("it is too large".to_owned()))?;
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut picture.as_mut(),
    );
    picture
        .encode_png()
        .map_err(|error| refused(error.to_string()))
}
