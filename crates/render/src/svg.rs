//! Charts as SVG. The SVG is deterministic text without a script, and is styled by the page's CSS.
//!
//! Every chart takes plain values, a title and a description; the caller decides what the values mean. Colours are CSS
//! classes (see [`palette`]), so that one chart suits light and dark pages.

pub mod canvas;
pub mod dot_plot;
pub mod forest_plot;
pub mod heat_map;
pub mod layer_diagram;
pub mod line_chart;
pub mod palette;
pub mod percentile_curves;
pub mod rate_panels;
pub mod scale;
pub mod sides_over_time;
pub mod timeline;
pub mod treemap;
pub mod trial_effects;
pub mod waterfall;
