//! The documented limits match the code.

use sandbox_images::Limits;

const PAGE: &str = include_str!("../../../../docs/images.md");

#[test]
fn the_documented_limits_match_the_defaults() {
    let Limits {
        layers,
        document_bytes,
        index_entries,
        index_depth,
        blob_bytes,
        archive_entries,
        entries,
        unpacked_bytes,
        file_bytes,
        path_bytes,
        depth,
    } = Limits::default();
    let section = PAGE.split("## Limits").nth(1).unwrap().split("\n## ").next().unwrap();
    let documented: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| "))
        .map(|(_, last)| last)
        .filter(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    let actual = [
        layers.to_string(),
        document_bytes.to_string(),
        index_entries.to_string(),
        index_depth.to_string(),
        blob_bytes.to_string(),
        archive_entries.to_string(),
        entries.to_string(),
        unpacked_bytes.to_string(),
        file_bytes.to_string(),
        path_bytes.to_string(),
        depth.to_string(),
    ];
    assert_eq!(documented, actual);
}
