use super::*;

#[test]
fn a_request_needs_something_to_run() {
    assert_eq!(Request::builder("python").build().unwrap_err(), InvalidRequest::NoCode);
}

#[test]
fn two_files_cannot_share_a_place() {
    for (first, second) in [("a.py", "./a.py"), ("a", "a/b")] {
        let request = Request::builder("python").file(first, "").file(second, "").build();
        assert!(matches!(request, Err(InvalidRequest::SamePath(_))), "{first} and {second}");
    }
}

#[test]
fn texts_the_kernel_would_not_take_are_refused() {
    let builder = || Request::builder("python").code("1");
    assert!(builder().args(["a\0b"]).build().is_err());
    assert!(builder().env("A=B", "c").build().is_err());
    assert!(builder().env("", "c").build().is_err());
    assert!(builder().args(["x".repeat(200_000)]).build().is_err());
    assert!(builder().usage_interval(Duration::from_millis(1)).build().is_err());
    assert!(builder().collect("../*").build().is_err());
    assert!(builder().workdir("/etc").build().is_err());
    assert!(builder().args(["fine"]).env("A", "b=c").build().is_ok());
}

#[test]
fn a_request_has_a_new_name_or_the_one_it_was_given() {
    let builder = || Request::builder("python").code("1");
    let id = builder().build().unwrap().id();
    assert_ne!(builder().build().unwrap().id(), id);
    assert_eq!(builder().id(id).build().unwrap().id(), id);
}

#[test]
fn a_language_may_carry_a_version() {
    let choice: LanguageChoice = "Python@3.11".parse().unwrap();
    assert_eq!((choice.name(), choice.version()), ("python", Some("3.11")));
    assert_eq!("c++".parse::<LanguageChoice>().unwrap().name(), "c++");
    for text in ["", "@3", "a b", "python@", "py/thon"] {
        assert!(text.parse::<LanguageChoice>().is_err(), "{text:?} was taken");
    }
}
