//! The scheduler of a server: it admits executions, queues them, runs them and recovers them after a crash.
//!
//! [`Scheduler::submit`] takes a checked request ([`Submission`]). The scheduler finds room for it in the
//! registry of unfinished executions, which enforces the quotas, stores it and adds it to the queue. The
//! dispatcher claims jobs that fit into the free capacity, and a worker runs each in a sandbox. Finished
//! executions are in the store. Clients wait for reports, read events and cancel, here or after a restart.
//!
//! The crate knows neither HTTP nor JSON requests of clients: a server translates those, implements
//! [`Observer`] for metrics, log and traces, and [`RequestDecoder`] to read stored requests back.

mod admission;
mod budget;
mod bus;
mod context;
mod error;
mod event_stream;
mod execution;
mod identity;
mod journal;
mod lock;
mod observer;
mod recovery;
mod registry;
mod report;
mod sandboxes;
mod scheduler;
mod submission;
mod worker;

pub use admission::Admission;
pub use context::SchedulerLimits;
pub use error::SchedulerError;
pub use event_stream::EventStream;
pub use identity::Identity;
pub use observer::{Completion, ExecutionObserver, Observer};
pub use recovery::{DecodedRequest, RequestDecoder};
pub use report::StoredReport;
pub use sandboxes::{Sandboxes, SandboxesError};
pub use scheduler::{QueueStatus, Scheduler};
pub use submission::{AnswerWith, Submission, Ticket};
pub use worker::block_in_place;
