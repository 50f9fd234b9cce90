//! Each statement of the page on durability names a test that exists.

use crate::git_files;

#[test]
fn statements_on_durability_name_existing_tests() {
    let page = git_files::read("docs/reference/durability.md");
    let (_, table) = page
        .split_once("| statement | test |")
        .expect("the page has a table of tests");
    let names = table.lines().filter_map(|line| line.rsplit('`').nth(1));
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 8, "{names:?}");
    let sources: Vec<String> = git_files::ending(".rs")
        .iter()
        .filter(|path| path.contains("/tests/"))
        .map(|path| git_files::read(path))
        .collect();
    for name in names {
        let declared = format!("fn {name}()");
        let exists = sources.iter().any(|source| source.contains(&declared));
        assert!(exists, "there is no test {name}");
    }
}
