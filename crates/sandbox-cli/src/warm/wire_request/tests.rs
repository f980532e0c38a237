use super::*;
use sandbox::NetworkPolicy;

/// A request in which nothing is as it would be by itself.
fn full() -> Request {
    let limits = Limits::run()
        .with_wall_time(Duration::from_micros(1_234_567))
        .and_then(|limits| limits.with_cpu_time(Duration::from_secs(2)))
        .and_then(|limits| limits.with_memory(ByteSize::kib(123_457)))
        .and_then(|limits| limits.with_cpus(0.3))
        .and_then(|limits| limits.with_pids(7))
        .and_then(|limits| limits.with_disk(ByteSize::kib(12_345)))
        .and_then(|limits| limits.with_output(ByteSize::bytes(1001)))
        .and_then(|limits| limits.with_open_files(99));
    let snippet = Snippet {
        lines: 4..=6,
        first: 2,
        first_indent: 8,
        indent: 4,
        head: 2,
        tail: 8,
        tail_in_template: 5,
    };
    Request::builder("Python@3.11")
        .code("print('é\0')")
        .file("b/data.bin", vec![0, 0xff])
        .file("a.txt", "text")
        .stdin(Stdin::from_reader(std::io::empty()))
        .args(["-x", "é"])
        .env("A", "b=c")
        .limits(limits.unwrap())
        .compile_limits(Limits::compile().with_memory(ByteSize::mib(77)).unwrap())
        .network(NetworkPolicy::Localhost)
        .collect("**/*.txt")
        .volume("/srv/data:/data:rw".parse().unwrap())
        .volume("/srv/more:/more".parse().unwrap())
        .workdir("sub/dir")
        .allow_missing(Protection::Landlock)
        .usage_interval(Duration::from_millis(20))
        .packages(["six", "numpy==2.*"])
        .host_packages(false)
        .workspace("job:ro")
        .snippet(snippet)
        .build()
        .unwrap()
}

fn there_and_back(request: &Request) -> Request {
    let wire = serde_json::to_vec(&WireRequest::of(request).unwrap()).unwrap();
    let asked: WireRequest = serde_json::from_slice(&wire).unwrap();
    let input = if asked.has_input { Stdin::from_reader(std::io::empty()) } else { Stdin::Empty };
    let contents = request.files().iter().map(|file| file.contents.clone()).collect();
    asked.into_request(contents, input).unwrap()
}

#[test]
fn a_request_arrives_as_it_was() {
    let small = Request::builder("bash").file("x.sh", "").environment("mine").build().unwrap();
    for request in [full(), small] {
        let arrived = there_and_back(&request);
        assert_eq!(format!("{arrived:#?}"), format!("{request:#?}"));
        assert_eq!(arrived.files(), request.files());
    }
}

/// A field that requests get later must be added to the wire format, or be refused.
#[test]
fn every_field_of_a_request_is_known_here() {
    let shown = format!("{:#?}", full());
    let fields: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|letter: char| letter.is_ascii_lowercase()))
        .filter_map(|line| line.split(':').next())
        .collect();
    let known = "id language code files stdin args env run_limits compile_limits network allow collect \
                 volumes workdir allow_missing host_packages usage_interval packages environment environments \
                 acceptance workspace workspaces_of compile_cache compile_cache_owner package_cache_owner \
                 snippet image";
    assert_eq!(fields, known.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn what_has_no_place_is_refused() {
    let code = || Request::builder("bash").code("1");
    for request in [
        code().stdin("bytes").build().unwrap(),
        code().workspaces_of("somebody").build().unwrap(),
        code().image("debian").build().unwrap(),
        code().compile_cache(false).build().unwrap(),
        code().compile_cache_owner("somebody").build().unwrap(),
        code().package_cache_owner("somebody").build().unwrap(),
        code().build().unwrap().with_environments("/srv".into()),
    ] {
        let failure = WireRequest::of(&request).unwrap_err();
        assert!(failure.to_string().contains("--warm"), "{failure}");
    }
}
