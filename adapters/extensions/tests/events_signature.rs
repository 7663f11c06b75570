//! Signatures of webhooks, against what others have computed.
#![cfg(feature = "webhooks")]

use mcp_sansio_extensions::events::webhook::{SignatureError, WebhookSecret};

const NOW: u64 = 1_614_265_330;
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const BODY: &[u8] = br#"{"test": 2432232314}"#;

fn secret() -> WebhookSecret {
    WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()
}

/// The vector of the libraries of Standard Webhooks.
#[test]
fn as_other_libraries_sign() {
    let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(secret().sign(ID, NOW, BODY), signature);
    let verify = |headers, body: &[u8], now| secret().verify(headers, body, now);
    assert_eq!(verify([ID, "1614265330", signature], BODY, NOW), Ok(()));
    // Any of several is enough: of two secrets, or of another scheme.
    let several = format!(
        "v1,AAAA v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw1/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg= {signature}"
    );
    assert_eq!(verify([ID, "1614265330", &several], BODY, NOW), Ok(()));
}

#[test]
fn what_is_refused() {
    let signature = secret().sign(ID, NOW, BODY);
    let verify = |headers, body: &[u8], now| secret().verify(headers, body, now);
    let wrong = Err(SignatureError::Signature);
    assert_eq!(verify([ID, "1614265330", &signature], b"{}", NOW), wrong);
    assert_eq!(verify(["other", "1614265330", &signature], BODY, NOW), wrong);
    assert_eq!(verify([ID, "1614265331", &signature], BODY, NOW), wrong);
    let other_scheme = signature.replace("v1,", "v2,");
    for other in ["", "v1,", "v1", &signature[3..], "v1,g0hM", &other_scheme] {
        assert_eq!(verify([ID, "1614265330", other], BODY, NOW), wrong, "{other}");
    }
    let other = WebhookSecret::new(&[7; 24]).unwrap();
    assert_eq!(other.verify([ID, "1614265330", &signature], BODY, NOW), wrong);
    // Five minutes are the limit, in both directions.
    for (now, verified) in [(NOW + 300, true), (NOW + 301, false), (NOW - 300, true), (NOW - 301, false)] {
        assert_eq!(verify([ID, "1614265330", &signature], BODY, now).is_ok(), verified, "{now}");
    }
    for time in ["", "x", "-1", "1614265330.0", "99999999999999999999999"] {
        assert_eq!(verify([ID, time, &signature], BODY, NOW), Err(SignatureError::Timestamp));
    }
}

#[test]
fn secrets_have_24_to_64_bytes() {
    for (len, is_one) in [(23, false), (24, true), (64, true), (65, false)] {
        let secret = WebhookSecret::new(&vec![5; len]);
        assert_eq!(secret.is_some(), is_one, "{len}");
        if let Some(secret) = secret {
            assert_eq!(WebhookSecret::parse(&secret.to_text()), Some(secret));
        }
    }
    for text in [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjU",
        "whsec_!fKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ] {
        assert_eq!(WebhookSecret::parse(text), None, "{text}");
    }
    assert_eq!(format!("{:?}", secret()), "WebhookSecret(..)");
}
