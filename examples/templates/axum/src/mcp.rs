//! The tools at `/mcp`.
use mcp_sansio::service::{Call, HandlerResult, Output, Service, tool};

use crate::Shop;

#[derive(Output)]
struct Left {
    pots: u32,
}

/// Counts the pots in stock
#[tool(output = Left, read_only, open_world = false)]
fn stock(shop: &mut Shop, call: &mut Call<'_>) -> HandlerResult {
    call.output(&Left { pots: shop.with(|stock| stock.pots) })
}

/// Puts pots into stock
#[tool(output = Left, destructive = false, open_world = false)]
fn deliver(shop: &mut Shop, call: &mut Call<'_>, #[arguments(minimum = 1, maximum = 100)] pots: u32) -> HandlerResult {
    let pots = shop.with(|stock| {
        stock.pots = stock.pots.saturating_add(pots);
        stock.pots
    });
    call.output(&Left { pots })
}

/// Sells pots
#[tool(output = Left, open_world = false)]
fn sell(shop: &mut Shop, call: &mut Call<'_>, #[arguments(minimum = 1)] pots: u32) -> HandlerResult {
    let left = shop.with(|stock| {
        stock.pots = stock.pots.checked_sub(pots)?;
        Some(stock.pots)
    });
    match left {
        Some(pots) => call.output(&Left { pots }),
        None => call.error("There are not so many pots in stock"), // the model reads this, and can ask for fewer
    }
}

pub const SERVICE: Service<'static, Shop> =
    Service::new("shop", env!("CARGO_PKG_VERSION")).tools(&[STOCK, DELIVER, SELL]);

#[cfg(test)]
mod tests {
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::testing::Conversation;
    use serde_json::json;

    use super::*;

    #[test]
    fn pots_in_all_revisions() {
        for revision in Revision::ALL {
            let shop = Shop::default();
            let mut conversation = Conversation::new(const { &SERVICE }, shop.clone());
            conversation.open(revision);
            assert_eq!(conversation.call("deliver", &json!({ "pots": 3 })).text(), r#"{"pots":3}"#);
            assert_eq!(conversation.call("sell", &json!({ "pots": 2 })).text(), r#"{"pots":1}"#);
            assert!(conversation.call("sell", &json!({ "pots": 2 })).is_error());
            assert!(conversation.call("deliver", &json!({ "pots": 101 })).is_error());
            assert_eq!(conversation.call("stock", &()).text(), r#"{"pots":1}"#);
            assert_eq!(shop.with(|stock| stock.pots), 1);
        }
    }
}
