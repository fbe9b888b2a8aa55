//! All kinds of charts, with odd names and figures.

use super::*;

const ODD: [&str; 4] = [
    "<script>alert(1)</script>",
    "a \"quoted\" & 'odd' name",
    "日本語/путь/ñandú\u{1}",
    "a/very/long/path/that/does/not/fit/into/any/column/of/a/figure/at/all",
];

fn name(number: usize) -> String {
    ODD[number % 4].to_owned()
}

fn row(number: usize, samples: &[f64], parts: &[f64]) -> Row {
    Row {
        name: name(number),
        samples: samples.to_vec(),
        parts: parts.to_vec(),
    }
}

fn bars(rows: &[Row]) -> Bars {
    let group = |label: &str| Group {
        label: label.to_owned(),
        rows: rows.to_vec(),
    };
    Bars {
        axis: "Time".to_owned(),
        unit: Unit::Seconds,
        parts: Vec::new(),
        groups: vec![group("untar"), group(ODD[3])],
        span: None,
    }
}

fn all_bars() -> Vec<Bars> {
    let many = [&[1.0, 1.2, 1.1][..], &[120.0], &[], &[0.0]];
    let many = many.iter().enumerate();
    let many: Vec<Row> = many.map(|(at, samples)| row(at, samples, &[])).collect();
    let stacks = [
        row(0, &[1.0, 2.0], &[1.0, 3.0]),
        row(2, &[1.0], &[0.0, 0.0]),
    ];
    vec![
        bars(&many),
        bars(&[row(0, &[1.0], &[])]),
        Bars {
            span: Some((0.01, 300.0)),
            ..bars(&many)
        },
        bars(&[]),
        Bars {
            groups: Vec::new(),
            unit: Unit::Bytes,
            ..bars(&[])
        },
        Bars {
            parts: vec![
                ("CPU".to_owned(), "user"),
                ("BLOCKED".to_owned(), "blocked"),
            ],
            ..bars(&stacks)
        },
    ]
}

fn scatter(clouds: usize) -> Chart {
    let point = |x, y, label: String| Point { x, y, label };
    let cloud = |number: usize| Cloud {
        name: name(number),
        points: vec![
            point(0.0, 1.0, name(number)),
            point(300.0, 0.01, "find".to_owned()),
        ],
    };
    Chart::Scatter(Scatter {
        across: "tar".to_owned(),
        up: "stook".to_owned(),
        unit: Unit::Seconds,
        clouds: (0..clouds).map(cloud).collect(),
    })
}

fn charts() -> Vec<Chart> {
    let points = [vec![(1e-6, 0.5), (1e-3, 1.0)], vec![], vec![(0.0, 1.0)]];
    let curves = points
        .into_iter()
        .enumerate()
        .map(|(number, points)| Curve {
            name: name(number),
            points,
        });
    let curves = Chart::Curves(Curves {
        axis: "Time".to_owned(),
        unit: Unit::Seconds,
        curves: curves.collect(),
    });
    let bars = all_bars().into_iter().map(Chart::Bars);
    bars.chain([scatter(8), scatter(0), curves]).collect()
}

#[test]
fn every_chart_is_well_formed_and_says_what_it_is() {
    for chart in charts() {
        let figure = Figure::new("test", ODD[0], chart);
        let page = figure.for_page(1).into_string();
        for text in [figure.svg(), page] {
            assert!(!text.contains("<script"), "{text}");
            assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
            let text = format!("<all>{text}</all>");
            let document = roxmltree::Document::parse(&text).expect(&text);
            let is_drawing = |node: &roxmltree::Node<'_, '_>| {
                node.has_tag_name(("http://www.w3.org/2000/svg", "svg"))
            };
            for drawing in document.descendants().filter(is_drawing) {
                assert_eq!(drawing.attribute("role"), Some("img"));
                let children = drawing.children().filter(roxmltree::Node::is_element);
                let names: Vec<&str> = children.map(|node| node.tag_name().name()).collect();
                assert_eq!(names[..2], ["title", "desc"]);
            }
        }
    }
}

/// Nothing lies outside the width of the drawing: on a phone it would be cut off.
#[test]
fn no_part_leaves_its_drawing() {
    for chart in charts() {
        for width in [Width::Wide, Width::Half, Width::Narrow] {
            let drawing = chart.draw(width);
            let text = format!("<svg>{}</svg>", drawing.body.into_string());
            let document = roxmltree::Document::parse(&text).expect(&text);
            let rectangles = document
                .descendants()
                .filter(|node| node.has_tag_name("rect"));
            for node in rectangles {
                let value = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
                let (right, bottom) = (value("x") + value("width"), value("y") + value("height"));
                assert!(value("x") >= 0.0 && right <= drawing.width + 0.1, "{text}");
                assert!(value("y") >= 0.0 && bottom <= drawing.height, "{text}");
            }
        }
    }
}
