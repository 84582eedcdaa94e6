//! Charts as SVG: deterministic text, styled by the page's CSS, no script.
//!
//! Every chart has a title and a description, and takes plain values: what they mean is said by the
//! caller. Colours are CSS classes (see [`palette`]), so that one chart fits light and dark.

pub mod curves;
pub mod draw;
pub mod effects;
pub mod forest;
pub mod heat;
pub mod intervals;
pub mod lines;
pub mod palette;
pub mod rates;
pub mod scale;
pub mod sides;
pub mod stack;
pub mod timeline;
pub mod treemap;
pub mod waterfall;
