//! The page about the two enumerations says what the tables say.

use orbweaver_model::OutcomeClass;
use orbweaver_wire::codes::{CUTS, OTHERS, RANGES};

#[test]
fn the_page_about_the_codes_has_the_tables() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/formats/http-codes.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let mut wanted = vec!["| 0 | no answer |".to_owned()];
    for (number, status, count) in RANGES {
        let (last, to) = (number + (count - 1), status + u16::from(count) - 1);
        let less = status - u16::from(number);
        wanted.push(format!(
            "| {number}–{last} | {status}–{to}: the number plus {less} |"
        ));
    }
    wanted.extend(OTHERS.map(|(number, words, ..)| format!("| {number} | {words} |")));
    for (place, class) in OutcomeClass::ALL.iter().enumerate() {
        wanted.push(format!("| {} | `{class}` |", place + 1));
    }
    for (place, cut) in CUTS.iter().enumerate() {
        wanted.push(format!("| {} | `{}` |", (place + 1) * 32, cut.as_str()));
    }
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit())
        .collect();
    assert_eq!(rows, wanted);
}
