//! Treemap: folders as nested rectangles whose area is proportional to the size of the folder.

use super::canvas::{Svg, shorten_name};
use super::palette::STEPS;

/// Functions that read a tree of any type.
pub struct SizeTree<'t, 'a, T> {
    /// Returns the size of a node, including everything below it.
    pub size: &'t dyn Fn(&T) -> u64,
    /// Returns the children of a node with their names, the largest first.
    pub below: &'t dyn Fn(&'a T) -> Vec<(String, &'a T)>,
    /// Returns the URL of the page for the folder with this path; `None` draws no hyperlinks.
    pub link: Option<&'t dyn Fn(&str) -> String>,
    /// Formats a size for the labels.
    pub show: &'t dyn Fn(u64) -> String,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 500.0;
/// Minimum size of a drawn rectangle in pixels. A user could not point at a smaller rectangle.
const LEAST: f64 = 3.0;
/// Height of a folder's label in pixels.
const LABEL: f64 = 15.0;
/// Approximate width of a character in pixels, from which the length of labels is computed.
const COLUMN: f64 = 6.4;
/// Deepest level that is drawn, because colours cannot distinguish more levels.
const DEEPEST: usize = 7;

struct TreemapDrawing<'t, 'a, T> {
    tree: &'t SizeTree<'t, 'a, T>,
    svg: Svg,
}

/// Draws the contents of `root` as SVG. `path` is the path of `root`.
#[must_use]
pub fn draw_treemap<'a, T>(
    id: &str,
    title: &str,
    path: &str,
    root: &'a T,
    tree: &SizeTree<'_, 'a, T>,
) -> String {
    let svg = Svg::new(WIDTH, HEIGHT);
    let mut drawing = TreemapDrawing { tree, svg };
    drawing.draw_folder(root, path, [0.0, 0.0, WIDTH, HEIGHT], 0);
    let description = "Rectangles within rectangles: the area of each is its share of the whole.";
    drawing.svg.finish(id, title, description)
}

impl<'a, T> TreemapDrawing<'_, 'a, T> {
    fn draw_folder(&mut self, node: &'a T, path: &str, area: [f64; 4], depth: usize) {
        let [x, y, width, height] = area;
        let step = (depth + 1).min(STEPS - 2);
        let bytes = (self.tree.size)(node);
        let size = (self.tree.show)(bytes);
        let title = format!("{path}: {size}");
        let link = self.tree.link.filter(|_| depth > 0);
        if let Some(link) = link {
            self.svg.open_link(&link(path));
        }
        self.svg
            .add_titled_rect(area, &format!("q{step} tile"), &title);
        let columns = ((width - 8.0) / COLUMN).max(0.0) as usize;
        let labelled = height > LABEL && columns > 3;
        if labelled {
            let name = path.rsplit('/').next().unwrap_or(path);
            let room = columns.saturating_sub(size.chars().count() + 2);
            let label = match room > 3 {
                true => format!("{}  {size}", shorten_name(name, room)),
                false => shorten_name(name, columns),
            };
            let class = format!("i{step}");
            self.svg.add_text(
                x + 4.0,
                y + 11.5,
                super::canvas::TextAnchor::Start,
                &class,
                &label,
            );
        }
        if link.is_some() {
            self.svg.close_link();
        }
        let top = if labelled { LABEL } else { 1.0 };
        let inner = [x + 1.0, y + top, width - 2.0, height - top - 1.0];
        if depth < DEEPEST {
            self.slice_area(&(self.tree.below)(node), bytes, path, inner, depth);
        }
    }

    /// Divides the area by weight into halves along its longer side, until each part has one child.
    fn slice_area(
        &mut self,
        children: &[(String, &'a T)],
        whole: u64,
        path: &str,
        area: [f64; 4],
        depth: usize,
    ) {
        let [x, y, width, height] = area;
        let size = |child: &(String, &T)| (self.tree.size)(child.1);
        let sum: u64 = children.iter().map(size).sum();
        if width < LEAST || height < LEAST || sum == 0 {
            return;
        }
        // Files directly in the folder keep their part of the area, which stays empty.
        let share = sum as f64 / whole.max(sum) as f64;
        let [width, height] = match width > height {
            true => [width * share, height],
            false => [width, height * share],
        };
        if let [(name, node)] = children {
            let path = format!("{}/{name}", path.trim_end_matches('/'));
            return self.draw_folder(node, &path, [x, y, width, height], depth + 1);
        }
        let mut first = 0;
        let mut cut = 0;
        while cut < children.len() - 1 && (cut == 0 || first * 2 < sum) {
            first += size(&children[cut]);
            cut += 1;
        }
        let part = first as f64 / sum as f64;
        let (one, two) = match width > height {
            true => (
                [x, y, width * part, height],
                [x + width * part, y, width * (1.0 - part), height],
            ),
            false => (
                [x, y, width, height * part],
                [x, y + height * part, width, height * (1.0 - part)],
            ),
        };
        self.slice_area(&children[..cut], first, path, one, depth);
        self.slice_area(&children[cut..], sum - first, path, two, depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node(u64, Vec<(String, Node)>);

    fn draw(root: &Node) -> String {
        let tree = SizeTree {
            size: &|node: &Node| node.0,
            below: &|node: &Node| {
                node.1
                    .iter()
                    .map(|(name, one)| (name.clone(), one))
                    .collect()
            },
            link: None,
            show: &|size| format!("{size} B"),
        };
        draw_treemap("t", "Folders", "/", root, &tree)
    }

    /// Returns the area of each rectangle, by its title.
    fn areas(svg: &str) -> Vec<(String, f64)> {
        let number = |text: &str, name: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let rects = svg.split("<rect").skip(1).map(|rect| {
            let title = rect.split("<title>").nth(1).unwrap();
            let title = title.split('<').next().unwrap().to_owned();
            (title, number(rect, "width") * number(rect, "height"))
        });
        rects.collect()
    }

    #[test]
    fn areas_are_shares_and_sizes_are_said() {
        let root = Node(
            400,
            vec![
                ("<a>".to_owned(), Node(300, Vec::new())),
                ("b".to_owned(), Node(100, Vec::new())),
            ],
        );
        let svg = draw(&root);
        let areas = areas(&svg);
        assert_eq!(areas[1].0, "/&lt;a&gt;: 300 B");
        assert!((areas[1].1 / areas[2].1 - 3.0).abs() < 0.05, "{areas:?}");
        assert!(svg.contains("class=\"i2\""));
        let labels = svg
            .split("</text>")
            .filter_map(|part| part.rsplit_once('>'));
        let labels: Vec<&str> = labels.map(|(_, label)| label.trim()).collect();
        insta::assert_snapshot!(labels.join("\n"), @r"
        400 B
        &lt;a&gt;  300 B
        b  100 B
        ");
    }

    #[test]
    fn a_deep_tree_and_an_empty_one_are_drawn() {
        let mut node = Node(7, Vec::new());
        for _ in 0..200 {
            node = Node(7, vec![("d".to_owned(), node)]);
        }
        assert_eq!(areas(&draw(&node)).len(), DEEPEST + 1);
        assert_eq!(areas(&draw(&Node(0, Vec::new()))).len(), 1);
    }
}
