use super::{Attack, check_all, contained, rejected};
use crate::archives::image;
use crate::harness::Harness;
use crate::tar_writer::{
    BLOCK_DEVICE, CHARACTER_DEVICE, FIFO, FILE, GNU_LINK, GNU_NAME, HARD_LINK, Head, Tar,
};

/// Leads from the root of an image to the root of the host, at any depth.
const UP: &str = "../../../../../../../../../../../../../../../..";

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

fn two(first: Tar, second: Tar) -> Vec<u8> {
    image("x:1", &[first.end(), second.end()])
}

/// Images that modify the canary if the unpacker follows their names.
#[expect(clippy::too_many_lines, reason = "a flat table of independent rows")]
pub(super) fn escapes(harness: &Harness) -> Vec<Attack> {
    let canary = harness.canary().to_str().unwrap().to_owned();
    // The path of the canary relative to the unpacked image.
    let up = format!("{UP}{canary}");
    let dangling = "is below a link whose target is not in the image";
    vec![
        rejected(
            "absolute path",
            one(Tar::new().pax(&[("path", format!("{canary}/file").as_bytes())]).file("x", "dead")),
            "has an absolute path",
        ),
        rejected(
            "path with ..",
            one(Tar::new().pax(&[("path", format!("{up}/file").as_bytes())]).file("x", "dead")),
            "has '..' in its path",
        ),
        rejected(
            "path with .. behind a directory",
            one(Tar::new()
                .directory("a/")
                .pax(&[("path", format!("a/../{up}/file").as_bytes())])
                .file("x", "dead")),
            "has '..' in its path",
        ),
        rejected(
            "long name of GNU with ..",
            one(Tar::new().gnu(GNU_NAME, format!("{up}/file\0").as_bytes()).file("x", "dead")),
            "has '..' in its path",
        ),
        rejected(
            "symlink out, then a file through it",
            one(Tar::new().symlink("out", &canary).file("out/file", "dead")),
            dangling,
        ),
        rejected(
            "relative symlink out, then a file through it",
            one(Tar::new().symlink("out", &up).file("out/file", "dead")),
            dangling,
        ),
        rejected(
            "symlink out, then a directory through it",
            one(Tar::new().symlink("out", &canary).directory("out/new/")),
            dangling,
        ),
        rejected(
            "symlink out in one layer, a file through it in the next",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/file", "dead")),
            dangling,
        ),
        rejected(
            "symlink to a symlink out",
            one(Tar::new().symlink("a", &canary).symlink("b", "a").file("b/file", "dead")),
            dangling,
        ),
        rejected(
            "directory replaced by a symlink out in the next layer, then written through",
            two(
                Tar::new().directory("d/").file("d/file", "x"),
                Tar::new().symlink("d", &canary).file("d/file", "dead"),
            ),
            dangling,
        ),
        rejected(
            "hard link to outside by an absolute path",
            one(Tar::new().hard_link("x", format!("{canary}/file"))),
            "is a hard link whose target has an absolute path",
        ),
        rejected(
            "hard link to outside by ..",
            one(Tar::new().hard_link("x", format!("{up}/file"))),
            "is a hard link whose target has '..' in its path",
        ),
        rejected(
            "long link of GNU to outside",
            one(Tar::new()
                .gnu(GNU_LINK, format!("{up}/file\0").as_bytes())
                .entry(Head::new(HARD_LINK, b"x", 0), b"")),
            "is a hard link whose target has '..' in its path",
        ),
        rejected(
            "hard link through a symlink out",
            one(Tar::new().symlink("out", &canary).hard_link("x", "out/file")),
            "is a hard link to a file that is not in the image",
        ),
        rejected(
            "hard link to a symlink out",
            one(Tar::new().symlink("out", format!("{canary}/file")).hard_link("x", "out")),
            "is a hard link to something other than a file",
        ),
        rejected(
            "hard link made through a symlink out",
            one(Tar::new().file("a", "x").symlink("out", &canary).hard_link("out/new", "a")),
            dangling,
        ),
        rejected(
            "whiteout of ..",
            two(Tar::new().directory("a/"), Tar::new().file("a/.wh...", "")),
            "is a whiteout of '.' or '..'",
        ),
        contained(
            "whiteout through a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/.wh.file", "")),
        ),
        contained(
            "opaque whiteout through a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/.wh..wh..opq", "")),
        ),
        contained(
            "whiteout of a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file(".wh.out", "")),
        ),
        contained(
            "file in place of a symlink to a file outside",
            one(Tar::new().symlink("out", format!("{canary}/file")).file("other", "x")),
        ),
        contained(
            "directory in place of a symlink out, in the next layer",
            two(
                Tar::new().symlink("out", format!("{canary}/directory")),
                Tar::new().directory("out/").file("out/file", "dead"),
            ),
        ),
        contained(
            "file in place of a symlink out, in the next layer",
            two(
                Tar::new().symlink("out", format!("{canary}/file")),
                Tar::new().entry(Head::new(FILE, b"out", 4).mode(0o777), b"dead"),
            ),
        ),
    ]
}

#[test]
fn names_and_links_do_not_escape() {
    check_all(escapes);
}

#[test]
fn invalid_names_and_types_are_rejected() {
    check_all(|_| {
        vec![
            rejected(
                "loop of symlinks",
                one(Tar::new().symlink("a", "b").symlink("b", "a").file("a/x", "")),
                "is below a loop of links",
            ),
            rejected(
                "symlink to itself",
                one(Tar::new().symlink("a", "a").file("a/x", "")),
                "is below a loop of links",
            ),
            rejected(
                "file below a file",
                one(Tar::new().file("a", "").file("a/x", "")),
                "is below a file that is not a directory",
            ),
            rejected(
                "whiteout of .",
                one(Tar::new().file("a/.wh..", "")),
                "is a whiteout of '.' or '..'",
            ),
            rejected(
                "whiteout without a name",
                one(Tar::new().file(".wh.", "")),
                "whiteout without a name",
            ),
            rejected(
                "whiteout of an unknown kind",
                one(Tar::new().file(".wh..wh.plnk", "")),
                "is an unknown kind of whiteout",
            ),
            rejected(
                "file below a whiteout",
                one(Tar::new().directory(".wh.a/b/")),
                "is below a name reserved for whiteouts",
            ),
            rejected(
                "block device",
                one(Tar::new().entry(Head::new(BLOCK_DEVICE, b"sda", 0).device(8, 0), b"")),
                "'sda' is a device",
            ),
            rejected(
                "character device",
                one(Tar::new().entry(Head::new(CHARACTER_DEVICE, b"mem", 0).device(1, 1), b"")),
                "'mem' is a device",
            ),
            contained(
                "whiteout of overlay file systems",
                one(Tar::new().entry(Head::new(CHARACTER_DEVICE, b"gone", 0), b"")),
            ),
            rejected(
                "block device 0, 0",
                one(Tar::new().entry(Head::new(BLOCK_DEVICE, b"sda", 0), b"")),
                "'sda' is a device",
            ),
            rejected("pipe", one(Tar::new().entry(Head::new(FIFO, b"p", 0), b"")), "'p' is a pipe"),
            rejected(
                "file, then a directory of that name",
                one(Tar::new().file("a", "").directory("a/")),
                "occurs twice with different types",
            ),
            rejected(
                "directory, then a symlink of that name, then a file through it",
                one(Tar::new().directory("a/").symlink("a", "/").file("a/x", "")),
                "occurs twice with different types",
            ),
            rejected(
                "file in place of a directory that the layer uses",
                two(Tar::new().directory("a/"), Tar::new().file("a/x", "").file("a", "")),
                "replaces a directory to which the same layer added files",
            ),
            rejected(
                "hard link to itself",
                one(Tar::new().hard_link("a", "a")),
                "is a hard link to a file that is not in the image",
            ),
            rejected(
                "hard link to a directory",
                one(Tar::new().directory("a/").hard_link("b", "a")),
                "is a hard link to something other than a file",
            ),
            rejected(
                "hard link to the root",
                one(Tar::new().hard_link("b", ".")),
                "is a hard link to a file that is not in the image",
            ),
            rejected(
                "the root as a symlink",
                one(Tar::new().symlink("./", "/etc")),
                "is the root, but not a directory",
            ),
            rejected(
                "symlink without a target",
                one(Tar::new().symlink("a", "")),
                "is a link without a target",
            ),
        ]
    });
}
