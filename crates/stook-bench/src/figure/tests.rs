//! All kinds of charts, with odd names and figures.

use super::*;

const ODD: [&str; 4] = [
    "<script>alert(1)</script>",
    "a \"quoted\" & 'odd' name",
    "日本語/путь/ñandú\u{1}",
    "a/very/long/path/that/does/not/fit/into/any/column/of/a/figure/at/all",
];

fn bars(samples: &[&[f64]]) -> Chart {
    let series: Vec<String> = samples
        .iter()
        .enumerate()
        .map(|(number, _)| ODD[number % 4].to_owned())
        .collect();
    let samples: Vec<Vec<f64>> = samples.iter().map(|samples| samples.to_vec()).collect();
    let group = |label: &str| Group {
        label: label.to_owned(),
        samples: samples.clone(),
    };
    Chart::Bars(Bars {
        axis: "Time".to_owned(),
        unit: Unit::Seconds,
        series,
        groups: vec![group("untar"), group(ODD[3])],
    })
}

fn within(chart: Chart) -> Chart {
    match chart {
        Chart::Bars(bars) => Chart::BarsWithin(bars, (0.01, 300.0)),
        other => other,
    }
}

fn charts() -> Vec<Chart> {
    let name = |number: usize| ODD[number % 4].to_owned();
    let cloud = |number: usize| Cloud {
        name: name(number),
        points: vec![
            Point {
                x: 0.0,
                y: 1.0,
                label: name(number),
            },
            Point {
                x: 300.0,
                y: 0.01,
                label: "find".to_owned(),
            },
        ],
    };
    let stack = |label: usize, parts: [f64; 2]| Stack {
        label: name(label),
        parts: parts.to_vec(),
        samples: vec![1.0, 2.0],
        note: String::new(),
    };
    vec![
        bars(&[&[1.0, 1.2, 1.1], &[120.0], &[], &[0.0]]),
        bars(&[&[1.0]]),
        within(bars(&[&[1.0], &[0.0]])),
        bars(&[]),
        Chart::Bars(Bars {
            axis: String::new(),
            unit: Unit::Bytes,
            series: vec![],
            groups: vec![],
        }),
        Chart::Stacks(Stacks {
            axis: "Time".to_owned(),
            unit: Unit::Seconds,
            parts: vec![
                ("CPU".to_owned(), "user"),
                ("BLOCKED".to_owned(), "blocked"),
            ],
            stacks: vec![stack(0, [1.0, 3.0]), stack(2, [0.0, 0.0])],
        }),
        Chart::Scatter(Scatter {
            across: "tar".to_owned(),
            up: "stook".to_owned(),
            unit: Unit::Seconds,
            clouds: (0..8).map(cloud).collect(),
        }),
        Chart::Scatter(Scatter {
            across: String::new(),
            up: String::new(),
            unit: Unit::Seconds,
            clouds: vec![],
        }),
        Chart::Curves(Curves {
            axis: "Time".to_owned(),
            unit: Unit::Seconds,
            curves: vec![
                Curve {
                    name: name(0),
                    points: vec![(1e-6, 0.5), (1e-3, 1.0)],
                },
                Curve {
                    name: name(1),
                    points: vec![],
                },
                Curve {
                    name: name(2),
                    points: vec![(0.0, 1.0)],
                },
            ],
        }),
        Chart::Heat(Heat {
            columns: vec!["create".to_owned(), name(3)],
            rows: vec![name(0), name(1)],
            cells: vec![vec![Some(0.1), None], vec![Some(1.0), Some(40.0)]],
            low: "stook is faster".to_owned(),
            high: "tar is faster".to_owned(),
        }),
    ]
}

fn figure(chart: Chart) -> Figure {
    Figure {
        name: "test".to_owned(),
        title: ODD[0].to_owned(),
        chart,
    }
}

#[test]
fn every_chart_is_well_formed_and_says_what_it_is() {
    for chart in charts() {
        let figure = figure(chart);
        let page = figure.for_page(1).into_string();
        for text in [figure.svg(), page] {
            assert!(!text.contains("<script"), "{text}");
            assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
            let text = format!("<all>{text}</all>");
            let document = roxmltree::Document::parse(&text).expect(&text);
            let drawings = document
                .descendants()
                .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "svg")));
            for drawing in drawings {
                assert_eq!(drawing.attribute("role"), Some("img"));
                let names: Vec<&str> = drawing
                    .children()
                    .filter(roxmltree::Node::is_element)
                    .map(|node| node.tag_name().name())
                    .collect();
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
            for node in document
                .descendants()
                .filter(|node| node.has_tag_name("rect"))
            {
                let value = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
                assert!(
                    value("x") >= 0.0 && value("x") + value("width") <= drawing.width + 0.1,
                    "{text}"
                );
                assert!(
                    value("y") >= 0.0 && value("y") + value("height") <= drawing.height,
                    "{text}"
                );
            }
        }
    }
}
