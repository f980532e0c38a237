//! Scratch.
use sandbox_backends::native::*;
use sandbox_core::*;
struct Print;
impl Observer for Print {
    fn output(&mut self, s: StreamKind, b: &[u8]) {
        eprintln!("{s:?}: {:?}", String::from_utf8_lossy(b));
    }
    fn usage(&mut self, s: UsageSample) {
        eprintln!("{s:?}");
    }
}
fn main() {
    let backend = NativeBackend::start(&NativeOptions::default()).unwrap_or_else(|e| {
        let mut c: Option<&dyn std::error::Error> = Some(&e);
        while let Some(e) = c {
            eprintln!("{e}");
            c = e.source();
        }
        std::process::exit(1)
    });
    let args: Vec<String> = std::env::args().skip(1).collect();
    for _ in 0..3 {
        let plan = StagePlan {
            stage: Stage::Run,
            command: args.clone(),
            env: [("PATH".to_string(), "/usr/bin:/bin".to_string())].into(),
            files: vec![InputFile {
                path: "main.py".parse().unwrap(),
                contents: b"print(6*7)\n".to_vec(),
                executable: false,
            }],
            directory: String::new(),
            stdin: Stdin::Empty,
            limits: Limits::run(),
            network: NetworkPolicy::None,
            volumes: vec![],
            collect: CollectRule::nothing(),
            allow_missing: Default::default(),
            usage_interval: None,
        };
        let t = std::time::Instant::now();
        let r = backend.run(&plan, &mut Print, &CancelToken::new());
        match r {
            Ok(o) => eprintln!(
                "{:?} {:?} {:?} prep {:?} coll {:?} total {:?} viol {:?}",
                o.ending,
                o.figures,
                String::from_utf8_lossy(&o.stdout),
                o.prepare_time,
                o.collect_time,
                t.elapsed(),
                o.violations
            ),
            Err(e) => {
                let mut c: Option<&dyn std::error::Error> = Some(&e);
                while let Some(e) = c {
                    eprintln!("{e}");
                    c = e.source();
                }
            }
        }
    }
}
