use sandbox_store::Permission;

use super::*;

fn host(variables: &[(&str, &str)]) -> HostInfo {
    HostInfo {
        variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        home: Some("/home/somebody".into()),
        // The developer's own configuration file is not read.
        config_home: Some("/nonexistent".into()),
        cores: 3,
        available_memory: Some(4 << 30),
        ..HostInfo::default()
    }
}

fn load(
    flags: Layer,
    file: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<LoadedSettings, ConfigError> {
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let path = directory.path().join("sandboxd.toml");
    std::fs::write(&path, file.unwrap_or_default()).expect("the file can be written");
    LoadedSettings::load(flags, Some(&path), &host(variables))
}

fn config(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load(Layer::default(), Some(file), variables)?.config()
}

fn listen_flag(address: &str) -> Layer {
    let mut layer = Layer::default();
    layer.set("listen", address.to_owned(), Source::Flag("--listen"));
    layer
}

fn origin_of(settings: &LoadedSettings, name: &str) -> Source {
    let mut settings = settings.values.in_order();
    let (_, _, source) = settings.find(|(other, _, _)| *other == name).expect("it is a setting");
    source.clone()
}

#[test]
fn defaults_apply_without_settings() {
    let config = config("", &[]).expect("the defaults are valid");
    assert_eq!(config.listen, "127.0.0.1:8080".parse().ok());
    assert_eq!((config.socket, config.idle_exit), (None, None));
    assert_eq!(config.data_dir, Path::new("/home/somebody/.local/state/sandboxd"));
    assert_eq!(config.database, config.data_dir.join("sandboxd.db"));
    assert_eq!(config.concurrency, 6);
    assert_eq!(config.memory_budget, ByteSize::mib(3 << 10));
    assert_eq!(config.retention.age, Duration::from_hours(7 * 24));
    assert_eq!(config.caps.memory, config.memory_budget);
    assert_eq!(config.caps.timeout, Duration::from_mins(5));
    assert_eq!(config.packages, Packages::On);
    assert_eq!(config.log, LogFormat::Pretty);
    assert!(config.key_permissions.is_empty());
    assert_eq!(config.shared_caches, SharedCaches::default());
    assert!(!config.local_permissions.contains(&Permission::AllowMissing));
    assert!(config.cors_origins.is_empty());
}

#[test]
fn each_layer_overrides_those_below() {
    let file = "listen = \"127.0.0.1:1\"\nburst = 7\nwait_limit = \"5s\"\n";
    let variables = [("SANDBOXD_LISTEN", "127.0.0.1:2"), ("SANDBOXD_BURST", "8")];
    let settings =
        load(listen_flag("127.0.0.1:3"), Some(file), &variables).expect("the layers are valid");
    let config = settings.config().expect("the values are valid");
    assert_eq!(config.listen.map(|address| address.port()), Some(3));
    assert_eq!(config.burst, 8);
    assert_eq!(config.wait_limit, Duration::from_secs(5));
    assert_eq!(origin_of(&settings, "listen"), Source::Flag("--listen"));
    assert_eq!(origin_of(&settings, "burst"), Source::Variable("SANDBOXD_BURST".to_owned()));
    assert!(matches!(origin_of(&settings, "wait_limit"), Source::File { line: 3, .. }));
    assert_eq!(origin_of(&settings, "queue"), Source::Default);
}

#[test]
fn a_variable_that_names_no_setting_is_refused() {
    let error = config("", &[("SANDBOXD_LISTN", "x")]).expect_err("it is misspelt").to_string();
    assert!(error.starts_with("SANDBOXD_LISTN: unknown setting 'listn'"), "{error}");
    assert!(config("", &[("SANDBOXD_listen", "127.0.0.1:1")]).is_err());
    assert!(config("", &[("SANDBOX_OTHER", "x")]).is_ok(), "it has another prefix");
}

#[test]
fn an_invalid_value_is_reported_with_its_source() {
    let error = config("", &[("SANDBOXD_MAX_BODY", "much")]).expect_err("it is no size");
    let error = error.to_string();
    assert!(error.starts_with("max_body (SANDBOXD_MAX_BODY): 'much' is not a size"), "{error}");
}

#[test]
fn invalid_values_are_refused() {
    let wrong = [
        ("SANDBOXD_LISTEN", "localhost"),
        ("SANDBOXD_CONCURRENCY", "0"),
        ("SANDBOXD_BURST", "-1"),
        ("SANDBOXD_REQUESTS_PER_MINUTE", "-1"),
        ("SANDBOXD_MAX_TIMEOUT", "0s"),
        ("SANDBOXD_MAX_MEMORY", "all"),
        ("SANDBOXD_MAX_PIDS", "0"),
        ("SANDBOXD_PACKAGES", "maybe"),
        ("SANDBOXD_ENVIRONMENTS_PER_KEY", "0"),
        ("SANDBOXD_WAIT_LIMIT", "0s"),
        ("SANDBOXD_MEMORY_BUDGET", "0"),
        ("SANDBOXD_CORS_ORIGINS", "example.org"),
        ("SANDBOXD_CALLBACK_ALLOW", "localhost"),
        ("SANDBOXD_LOG", "xml"),
        ("SANDBOXD_VOLUMES_FROM", "/srv,data"),
        ("SANDBOXD_ROLE", "api"),
        ("SANDBOXD_QUEUE", "redis://localhost"),
        ("SANDBOXD_DATABASE", "postgres://localhost"),
    ];
    for variable in wrong {
        assert!(config("", &[variable]).is_err(), "{variable:?} was taken");
    }
}

#[test]
fn zero_requests_per_minute_means_no_limit() {
    let config = config("requests_per_minute = 0\nmemory_budget = \"2G\"\n", &[]).unwrap();
    assert_eq!(config.requests_per_minute, 0);
    assert_eq!(config.caps.memory, ByteSize::mib(2048), "it follows the budget");
}

#[test]
fn a_named_file_must_exist() {
    let missing = Some(Path::new("/nonexistent/sandboxd.toml"));
    let error = LoadedSettings::load(Layer::default(), missing, &host(&[]));
    assert!(matches!(error, Err(ConfigError::Unreadable { .. })), "{error:?}");
}

#[test]
fn without_a_home_directory_data_dir_is_required() {
    let homeless = HostInfo { home: None, ..host(&[]) };
    let error = LoadedSettings::load(Layer::default(), None, &homeless);
    assert!(matches!(error, Err(ConfigError::Invalid { name: "data_dir", .. })), "{error:?}");
    let named =
        HostInfo { variables: vec![("SANDBOXD_DATA_DIR".into(), "/data".into())], ..homeless };
    let settings = LoadedSettings::load(Layer::default(), None, &named).expect("it is named");
    assert_eq!(settings.config().expect("the values are valid").data_dir, Path::new("/data"));
}
