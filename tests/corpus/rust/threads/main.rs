//! Threads that share by lock, by atomic, by channel, by scope and by turns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;

fn main() {
    let counts = Arc::new(Mutex::new(BTreeMap::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    let start = Arc::new(Barrier::new(8));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let (counts, calls, start) = (Arc::clone(&counts), Arc::clone(&calls), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                for _ in 0..1000 {
                    calls.fetch_add(1, Ordering::Relaxed);
                    *counts.lock().unwrap().entry(worker % 3).or_insert(0) += 1;
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    println!("{} {:?}", calls.load(Ordering::Relaxed), counts.lock().unwrap());

    let (send, receive) = mpsc::sync_channel(4);
    for part in 0..4_u64 {
        let send = send.clone();
        thread::spawn(move || (part * 250..(part + 1) * 250).for_each(|number| send.send(number).unwrap()));
    }
    drop(send);
    println!("{}", receive.iter().map(|number| number * number).sum::<u64>());

    let table = RwLock::new(vec![1, 2, 3]);
    let total: i32 = thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|index| scope.spawn({ let table = &table; move || table.read().unwrap()[index] })).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    println!("{total}");

    let turn = (Mutex::new(0), Condvar::new());
    let said = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for me in [2, 0, 1] {
            let (turn, said) = (&turn, &said);
            scope.spawn(move || {
                let mut whose = turn.1.wait_while(turn.0.lock().unwrap(), |whose| *whose != me).unwrap();
                said.lock().unwrap().push(me);
                *whose += 1;
                turn.1.notify_all();
            });
        }
    });
    println!("{:?}", said.lock().unwrap());
    let poisoned = Arc::new(Mutex::new(1));
    let other = Arc::clone(&poisoned);
    let panicked = thread::spawn(move || { let _held = other.lock(); panic!("in a thread") }).join();
    println!("{} {}", panicked.is_err(), poisoned.is_poisoned());
}
