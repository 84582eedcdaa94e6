//! What people read: terminal tables, JSON, self-contained HTML with SVG charts.
