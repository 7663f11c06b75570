//! Decisions that come later, own their texts, or depend on the message.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

use common::*;
use http::StatusCode;
use mcp_sansio_tower::{Access, Grant, Refusal};
use serde_json::json;

#[test]
fn a_decision_may_come_later() {
    let known = Arc::new(AtomicU8::new(0));
    let knows = Arc::clone(&known);
    let web = Web::with(move |options| {
        options.authorize(move |_, _| match knows.load(Ordering::SeqCst) {
            0 => Access::Later,
            1 => Access::GrantedTo(Grant::to(Some("ann")).unwrap().header("DPoP-Nonce", "1").unwrap()),
            _ => Access::RefusedWith(Refusal::new(401).header("WWW-Authenticate", "Bearer").unwrap()),
        })
    });
    let count = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&count));
    let cx = &mut Context::from_waker(&waker);
    let ask = || web.call(modern("tools/call", json!({"name": "echo"})));
    let (mut first, mut dropped) = (ask(), ask());
    assert!(first.as_mut().poll(cx).is_pending() && dropped.as_mut().poll(cx).is_pending());
    drop(dropped);
    // It is asked again, and still does not know.
    web.late.decided().unwrap();
    assert_eq!(count.get(), 1);
    assert!(first.as_mut().poll(cx).is_pending());

    known.store(1, Ordering::SeqCst);
    web.late.decided().unwrap();
    assert_eq!(count.get(), 2);
    let Poll::Ready(Ok(response)) = first.as_mut().poll(cx) else { panic!("it waits") };
    assert_eq!((response.status(), &response.headers()["dpop-nonce"]), (StatusCode::OK, &"1".parse().unwrap()));
    assert_eq!(web.seen.lock().unwrap().principals, [Some("ann".to_owned())]);

    known.store(2, Ordering::SeqCst);
    let Poll::Ready(Ok(response)) = ask().as_mut().poll(cx) else { panic!("it waits") };
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
}

#[test]
fn a_decision_may_depend_on_the_message() {
    let web = Web::with(|options| {
        options
            .authorize(|_, head| {
                let writes = head.text("authorization") == Some("Bearer writer");
                Access::GrantedTo(Grant::to(None).unwrap().scopes(u64::from(writes)))
            })
            .permit(|message| match message.calls_tool("change") && message.scopes == 0 {
                true => Access::Denied { status: 403, challenge: Some("Bearer error=\"insufficient_scope\"") },
                false => Access::Granted { principal: None },
            })
    });
    let status = |name: &str, token: &'static str| {
        let mut request = modern("tools/call", json!({"name": name}));
        request.headers_mut().insert("Authorization", token.parse().unwrap());
        web.send(request).status().as_u16()
    };
    assert_eq!(status("echo", "Bearer reader"), 200);
    assert_eq!(status("change", "Bearer reader"), 403);
    assert_eq!(status("change", "Bearer writer"), 200);
}
