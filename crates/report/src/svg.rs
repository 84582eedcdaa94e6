//! Charts as SVG: deterministic text, styled by the page's CSS, no script.
