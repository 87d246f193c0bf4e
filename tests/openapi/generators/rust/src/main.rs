// SPDX-License-Identifier: MIT
//! The job of README.md with the client for Rust: job URL DEFAULT_TTL_MS NAME
use client::apis::configuration::Configuration;
use client::apis::locks_api::*;
use client::apis::{Error, ResponseContent};
use client::models::{
    AcquireRequest, BatchOperation, BatchRequest, Grant, LockMode, OperationKind, Problem,
};
use std::fmt::Debug;

/// The variants are untagged: whatever the status, it is the first of them.
macro_rules! problem {
    ($result:expr, $error:ident) => {
        match $result {
            Err(Error::ResponseError(ResponseContent {
                entity: Some($error::Status400(problem)),
                status,
                ..
            })) => {
                assert_eq!(i32::from(status.as_u16()), problem.status);
                problem
            }
            other => panic!("{other:?}"),
        }
    };
}

fn check(problem: &Problem, status: i32, code: &str) {
    assert!(problem.status == status && problem.code == code, "{problem:?}");
}

fn done<T, E: Debug>(result: Result<T, Error<E>>) -> T {
    result.unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let at = Configuration { base_path: args[1].clone(), ..Configuration::new() };
    let ttl: i64 = args[2].parse().unwrap();
    let name = &args[3];
    let of = |resource: &str| AcquireRequest { resource: Some(resource.into()), ..Default::default() };
    let acquire = |wish: AcquireRequest| acquire_lock(&at, wish, None);
    let release = |grant: &Grant| {
        assert!(done(release_lock(&at, &grant.id, Some(&grant.token), None)).released)
    };
    let extend = |grant: &Grant| extend_lock(&at, &grant.id, Some(&grant.token), None);

    let resource = format!("Straße/{name}");
    let first = done(acquire(of(&resource)));
    assert!(first.resource.as_ref() == Some(&resource) && first.ttl_ms == ttl, "{first:?}");
    let held = problem!(acquire(of(&resource)), AcquireLockError);
    check(&held, 409, "lock_held");
    assert_eq!(held.held_by.unwrap().fencing_token, Some(first.fencing_token));
    let seen = done(get_lock(&at, &first.id, None, None));
    assert_eq!(seen.fencing_token, Some(first.fencing_token));
    let longer = done(extend(&first));
    assert!(longer.token == first.token && longer.ttl_ms == ttl, "{longer:?}");
    let long = AcquireRequest { ttl_ms: Some(20001), ..of(&resource) };
    let wrong = problem!(acquire(long), AcquireLockError);
    check(&wrong, 400, "invalid_request");
    assert_eq!(wrong.errors.unwrap()[0].pointer, "/ttl_ms");

    let some = AcquireRequest {
        limit: Some(3),
        permits: Some(2),
        ttl_ms: Some(20000),
        ..of(&format!("pool {name}"))
    };
    let permits = done(acquire(some));
    assert!(permits.slots.as_ref().unwrap().len() == 2 && permits.ttl_ms == 20000, "{permits:?}");
    release(&permits);

    let reader = AcquireRequest { mode: Some(LockMode::Shared), ..of(&format!("report {name}")) };
    let (one, other) = (done(acquire(reader.clone())), done(acquire(reader)));
    assert!(one.mode == "shared" && one.token != other.token, "{one:?}");
    release(&one);
    release(&other);

    let forced = done(acquire(of(&format!("forced {name}"))));
    let number = forced.fencing_token.to_string();
    let gone = done(release_lock(&at, &forced.id, None, Some(&number)));
    assert!(gone.released && gone.nodes.released >= 3, "{gone:?}");
    check(&problem!(extend(&forced), ExtendLockError), 404, "lock_not_found");

    let made_up = format!("1795221641865000.{}", "8f1c27a5".repeat(5));
    let extend_it = BatchOperation {
        id: Some(first.id.clone()),
        token: Some(first.token.clone()),
        ..BatchOperation::new(OperationKind::Extend)
    };
    let release_it = BatchOperation {
        id: Some("nobody".to_string()),
        token: Some(made_up),
        ..BatchOperation::new(OperationKind::Release)
    };
    let acquire_it = BatchOperation {
        resource: Some(format!("batch {name}")),
        ..BatchOperation::new(OperationKind::Acquire)
    };
    let items =
        done(run_batch(&at, BatchRequest::new(vec![extend_it, release_it, acquire_it]))).results;
    assert_eq!((items[0].status, items[1].status, items[2].status), (200, 404, 201));
    assert_eq!(items[0].grant.as_ref().unwrap().token, first.token);
    assert_eq!(items[1].problem.as_ref().unwrap().code, "lock_not_found");
    release(items[2].grant.as_ref().unwrap());

    release(&first);
    check(&problem!(extend(&first), ExtendLockError), 404, "lock_not_found");
}
