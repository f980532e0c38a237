//! More executions at once than this process has file descriptors for: each ends with a report, and none waits for ever.
//! In a program of their own, because the limit is the whole process's.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use sandbox::{Execution, Request, Sandbox, Status};

/// Far more than a hundred short programs take.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn a_hundred_executions_share_the_descriptors_of_a_small_process() {
    let few = Some(256);
    setrlimit(Resource::Nofile, Rlimit { current: few, maximum: few }).expect("it can be lowered");
    let sandbox = Sandbox::new().expect("a sandbox can be started");
    let begun = Instant::now();
    let start = |number| -> Execution {
        let code = format!("sleep 0.1; echo {number}");
        let request = Request::builder("bash").code(code).build().expect("it is valid");
        sandbox.start(request).expect("the request is taken")
    };
    let executions: Vec<Execution> = (0..100).map(start).collect();
    // One that waits for its turn can be cancelled.
    let last = start(100);
    last.cancel();
    let report = last.wait().expect("the request was taken");
    assert_eq!(report.status, Status::Cancelled, "{:?}", report.error);
    for (number, execution) in executions.into_iter().enumerate() {
        let report = execution.wait().expect("the request was taken");
        assert_eq!(report.status, Status::Completed, "{number}: {:?}", report.error);
        assert_eq!(report.stdout, format!("{number}\n"));
    }
    assert!(begun.elapsed() < TEST_TIMEOUT);
}
