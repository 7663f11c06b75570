//! The objects of the protocol with all members. A test compares each of them with the five official schemas.
//! The project does not send tasks, so `task`, `tasks` and `execution` of a tool are left out.

use crate::revision::Revision::{A, B, C, D, E};
use crate::shape::{Block, Inner, Shape, member};

// Parts of several objects.

pub(crate) static META: Shape = Shape {
    name: "_meta",
    open: true,
    members: &[
        member("progressToken"),
        member("io.modelcontextprotocol/protocolVersion").since(E),
        member("io.modelcontextprotocol/clientCapabilities").since(E).object(&CLIENT_CAPABILITIES),
        member("io.modelcontextprotocol/clientInfo").since(E).object(&IMPLEMENTATION),
        member("io.modelcontextprotocol/logLevel").since(E),
        member("io.modelcontextprotocol/serverInfo").since(E).object(&IMPLEMENTATION),
        member("io.modelcontextprotocol/subscriptionId").since(E),
    ],
};

pub(crate) static IMPLEMENTATION: Shape = Shape::new(
    "Implementation",
    &[
        member("name"),
        member("version"),
        member("title").since(C),
        member("description").since(D),
        member("icons").since(D).list(&ICON),
        member("websiteUrl").since(D),
    ],
);

static ICON: Shape = Shape::new("Icon", &[member("src"), member("mimeType"), member("sizes"), member("theme")]);

static ANNOTATIONS: Shape =
    Shape::new("Annotations", &[member("audience"), member("priority"), member("lastModified").since(C)]);

static EMPTY: Shape = Shape::new("an empty object", &[]);

// Capabilities.

pub(crate) static CLIENT_CAPABILITIES: Shape = Shape::new(
    "ClientCapabilities",
    &[
        member("experimental"),
        member("roots").object(&Shape::new("roots capability", &[member("listChanged").until(D)])),
        member("sampling")
            .object(&Shape::new("sampling capability", &[member("tools").since(D), member("context").since(D)])),
        member("elicitation")
            .since(C)
            .object(&Shape::new("elicitation capability", &[member("form").since(D), member("url").since(D)])),
        // SEP-2133: hosts of apps declare them at 2025-11-25, whose schema does not know them.
        member("extensions").since(D),
    ],
);

static SERVER_CAPABILITIES: Shape = Shape::new(
    "ServerCapabilities",
    &[
        member("experimental"),
        member("tools").object(&LIST_CHANGED),
        member("prompts").object(&LIST_CHANGED),
        member("resources").object(&Shape::new("resources capability", &[member("listChanged"), member("subscribe")])),
        member("logging").object(&EMPTY),
        member("completions").since(B).object(&EMPTY),
        // SEP-2133: hosts of apps declare them at 2025-11-25, whose schema does not know them.
        member("extensions").since(D),
    ],
);

static LIST_CHANGED: Shape = Shape::new("capability", &[member("listChanged")]);

// Items of a server.

static TOOL: Shape = Shape::new(
    "Tool",
    &[
        member("name"),
        member("description"),
        member("inputSchema"),
        member("annotations").since(B).object(&TOOL_ANNOTATIONS),
        member("title").since(C),
        member("outputSchema").since(C),
        member("_meta").since(C).object(&META),
        member("icons").since(D).list(&ICON),
    ],
);

static TOOL_ANNOTATIONS: Shape = Shape::new(
    "ToolAnnotations",
    &[
        member("title"),
        member("readOnlyHint"),
        member("destructiveHint"),
        member("idempotentHint"),
        member("openWorldHint"),
    ],
);

static PROMPT: Shape = Shape::new(
    "Prompt",
    &[
        member("name"),
        member("description"),
        member("arguments").list(&PROMPT_ARGUMENT),
        member("title").since(C),
        member("_meta").since(C).object(&META),
        member("icons").since(D).list(&ICON),
    ],
);

static PROMPT_ARGUMENT: Shape = Shape::new(
    "PromptArgument",
    &[member("name"), member("description"), member("required"), member("title").since(C)],
);

static RESOURCE: Shape = Shape::new(
    "Resource",
    &[
        member("uri"),
        member("name"),
        member("description"),
        member("mimeType"),
        member("size"),
        member("annotations").object(&ANNOTATIONS),
        member("title").since(C),
        member("_meta").since(C).object(&META),
        member("icons").since(D).list(&ICON),
    ],
);

static RESOURCE_TEMPLATE: Shape = Shape::new(
    "ResourceTemplate",
    &[
        member("uriTemplate"),
        member("name"),
        member("description"),
        member("mimeType"),
        member("annotations").object(&ANNOTATIONS),
        member("title").since(C),
        member("_meta").since(C).object(&META),
        member("icons").since(D).list(&ICON),
    ],
);

static RESOURCE_CONTENTS: Shape = Shape::new(
    "TextResourceContents|BlobResourceContents",
    &[member("uri"), member("mimeType"), member("text"), member("blob"), member("_meta").since(C).object(&META)],
);

// Content.

static CONTENT: &[Block] = &[
    ("text", A, &TEXT),
    ("image", A, &IMAGE),
    ("audio", B, &AUDIO),
    ("resource", A, &EMBEDDED),
    ("resource_link", C, &RESOURCE_LINK),
];

static SAMPLING_CONTENT: &[Block] = &[
    ("text", A, &TEXT),
    ("image", A, &IMAGE),
    ("audio", B, &AUDIO),
    ("tool_use", D, &TOOL_USE),
    ("tool_result", D, &TOOL_RESULT),
];

static TEXT: Shape = Shape::new(
    "TextContent",
    &[
        member("type"),
        member("text"),
        member("annotations").object(&ANNOTATIONS),
        member("_meta").since(C).object(&META),
    ],
);

static IMAGE: Shape = Shape::new(
    "ImageContent",
    &[
        member("type"),
        member("data"),
        member("mimeType"),
        member("annotations").object(&ANNOTATIONS),
        member("_meta").since(C).object(&META),
    ],
);

static AUDIO: Shape = Shape::new(
    "AudioContent",
    &[
        member("type"),
        member("data"),
        member("mimeType"),
        member("annotations").object(&ANNOTATIONS),
        member("_meta").since(C).object(&META),
    ],
);

static EMBEDDED: Shape = Shape::new(
    "EmbeddedResource",
    &[
        member("type"),
        member("resource").object(&RESOURCE_CONTENTS),
        member("annotations").object(&ANNOTATIONS),
        member("_meta").since(C).object(&META),
    ],
);

static RESOURCE_LINK: Shape = Shape::new(
    "ResourceLink",
    &[
        member("type"),
        member("uri"),
        member("name"),
        member("description"),
        member("mimeType"),
        member("size"),
        member("annotations").object(&ANNOTATIONS),
        member("title").since(C),
        member("_meta").object(&META),
        member("icons").since(D).list(&ICON),
    ],
);

static TOOL_USE: Shape = Shape::new(
    "ToolUseContent",
    &[member("type"), member("id"), member("name"), member("input"), member("_meta").object(&META)],
);

static TOOL_RESULT: Shape = Shape::new(
    "ToolResultContent",
    &[
        member("type"),
        member("toolUseId"),
        member("content").inside(Inner::Content(CONTENT)),
        member("structuredContent"),
        member("isError"),
        member("_meta").object(&META),
    ],
);

// Results of a server.

pub(crate) static EMPTY_RESULT: Shape =
    Shape::new("Result", &[member("_meta").object(&META), member("resultType").since(E)]);

pub(crate) static INITIALIZE_RESULT: Shape = Shape::new(
    "InitializeResult",
    &[
        member("protocolVersion"),
        member("capabilities").object(&SERVER_CAPABILITIES),
        member("serverInfo").object(&IMPLEMENTATION),
        member("instructions"),
        member("_meta").object(&META),
    ],
);

pub(crate) static DISCOVER_RESULT: Shape = Shape::new(
    "DiscoverResult",
    &[
        member("supportedVersions"),
        member("capabilities").object(&SERVER_CAPABILITIES),
        member("instructions"),
        member("ttlMs"),
        member("cacheScope"),
        member("resultType"),
        member("_meta").object(&META),
    ],
);

/// A page of a list: its own member, and those of all lists.
macro_rules! page {
    ($static:ident, $name:literal, $member:literal, $item:ident) => {
        pub(crate) static $static: Shape = Shape::new(
            $name,
            &[
                member($member).list(&$item),
                member("nextCursor"),
                member("_meta").object(&META),
                member("resultType").since(E),
                member("ttlMs").since(E),
                member("cacheScope").since(E),
            ],
        );
    };
}

page!(LIST_TOOLS_RESULT, "ListToolsResult", "tools", TOOL);
page!(LIST_PROMPTS_RESULT, "ListPromptsResult", "prompts", PROMPT);
page!(LIST_RESOURCES_RESULT, "ListResourcesResult", "resources", RESOURCE);
page!(LIST_TEMPLATES_RESULT, "ListResourceTemplatesResult", "resourceTemplates", RESOURCE_TEMPLATE);

pub(crate) static CALL_TOOL_RESULT: Shape = Shape::new(
    "CallToolResult",
    &[
        member("content").inside(Inner::Content(CONTENT)),
        member("isError"),
        member("structuredContent").since(C),
        member("_meta").object(&META),
        member("resultType").since(E),
    ],
);

pub(crate) static GET_PROMPT_RESULT: Shape = Shape::new(
    "GetPromptResult",
    &[
        member("description"),
        member("messages").list(&PROMPT_MESSAGE),
        member("_meta").object(&META),
        member("resultType").since(E),
    ],
);

static PROMPT_MESSAGE: Shape =
    Shape::new("PromptMessage", &[member("role"), member("content").inside(Inner::Content(CONTENT))]);

pub(crate) static READ_RESULT: Shape = Shape::new(
    "ReadResourceResult",
    &[
        member("contents").list(&RESOURCE_CONTENTS),
        member("_meta").object(&META),
        member("resultType").since(E),
        member("ttlMs").since(E),
        member("cacheScope").since(E),
    ],
);

pub(crate) static COMPLETE_RESULT: Shape = Shape::new(
    "CompleteResult",
    &[
        member("completion").object(&Shape::new("completion", &[member("values"), member("total"), member("hasMore")])),
        member("_meta").object(&META),
        member("resultType").since(E),
    ],
);

pub(crate) static LISTEN_RESULT: Shape =
    Shape::new("SubscriptionsListenResult", &[member("_meta").object(&META), member("resultType")]);

pub(crate) static INPUT_REQUIRED: Shape = Shape::new(
    "InputRequiredResult",
    &[
        member("inputRequests").inside(Inner::InputRequests),
        member("requestState"),
        member("resultType"),
        member("_meta").object(&META),
    ],
);

pub(crate) static INPUT_REQUEST: Shape = Shape::new("input request", &[member("method"), member("params")]);

// Results of a client.

pub(crate) static CREATE_MESSAGE_RESULT: Shape = Shape::new(
    "CreateMessageResult",
    &[
        member("role"),
        member("content").inside(Inner::Content(SAMPLING_CONTENT)),
        member("model"),
        member("stopReason"),
        member("_meta").object(&META),
    ],
);

pub(crate) static LIST_ROOTS_RESULT: Shape =
    Shape::new("ListRootsResult", &[member("roots").list(&ROOT), member("_meta").until(D).object(&META)]);

static ROOT: Shape = Shape::new("Root", &[member("uri"), member("name"), member("_meta").since(C).object(&META)]);

pub(crate) static ELICIT_RESULT: Shape =
    Shape::new("ElicitResult", &[member("action"), member("content"), member("_meta").until(D).object(&META)]);

// Parameters of requests.

pub(crate) static NO_PARAMS: Shape = Shape::new("params", &[member("_meta").object(&META)]);

pub(crate) static INITIALIZE_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("protocolVersion"),
        member("capabilities").object(&CLIENT_CAPABILITIES),
        member("clientInfo").object(&IMPLEMENTATION),
        member("_meta").object(&META),
    ],
);

pub(crate) static LIST_PARAMS: Shape = Shape::new("params", &[member("cursor"), member("_meta").object(&META)]);

pub(crate) static URI_PARAMS: Shape = Shape::new("params", &[member("uri"), member("_meta").object(&META)]);

pub(crate) static LEVEL_PARAMS: Shape = Shape::new("params", &[member("level"), member("_meta").object(&META)]);

/// The parameters of `tools/call` and `prompts/get`.
pub(crate) static CALL_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("name"),
        member("arguments"),
        member("inputResponses").since(E).inside(Inner::InputResponses),
        member("requestState").since(E),
        member("_meta").object(&META),
    ],
);

pub(crate) static READ_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("uri"),
        member("inputResponses").since(E).inside(Inner::InputResponses),
        member("requestState").since(E),
        member("_meta").object(&META),
    ],
);

pub(crate) static COMPLETE_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("ref").object(&Shape::new(
            "PromptReference|ResourceReference|ResourceTemplateReference",
            &[member("type"), member("name"), member("uri"), member("title").since(C)],
        )),
        member("argument").object(&Shape::new("argument", &[member("name"), member("value")])),
        member("context").since(C).object(&Shape::new("context", &[member("arguments")])),
        member("_meta").object(&META),
    ],
);

pub(crate) static LISTEN_PARAMS: Shape =
    Shape::new("params", &[member("notifications").object(&SUBSCRIPTION_FILTER), member("_meta").object(&META)]);

static SUBSCRIPTION_FILTER: Shape = Shape::new(
    "SubscriptionFilter",
    &[
        member("toolsListChanged"),
        member("promptsListChanged"),
        member("resourcesListChanged"),
        member("resourceSubscriptions"),
    ],
);

pub(crate) static CREATE_MESSAGE_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("messages").list(&SAMPLING_MESSAGE),
        member("maxTokens"),
        member("modelPreferences").object(&MODEL_PREFERENCES),
        member("systemPrompt"),
        member("includeContext"),
        member("temperature"),
        member("stopSequences"),
        member("metadata"),
        member("tools").since(D).list(&TOOL),
        member("toolChoice").since(D).object(&Shape::new("ToolChoice", &[member("mode")])),
        member("_meta").until(D).object(&META),
    ],
);

static SAMPLING_MESSAGE: Shape = Shape::new(
    "SamplingMessage",
    &[
        member("role"),
        member("content").inside(Inner::Content(SAMPLING_CONTENT)),
        member("_meta").since(D).object(&META),
    ],
);

static MODEL_PREFERENCES: Shape = Shape::new(
    "ModelPreferences",
    &[
        member("hints").list(&Shape::new("ModelHint", &[member("name")])),
        member("costPriority"),
        member("speedPriority"),
        member("intelligencePriority"),
    ],
);

pub(crate) static ELICIT_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("message"),
        member("requestedSchema").object(&REQUESTED_SCHEMA),
        member("mode").since(D),
        member("url").since(D),
        member("elicitationId").only(D),
        member("_meta").until(D).object(&META),
    ],
);

static REQUESTED_SCHEMA: Shape = Shape::new(
    "requestedSchema",
    &[
        member("type"),
        member("properties").inside(Inner::Map(&PRIMITIVE)),
        member("required"),
        member("$schema").since(D),
    ],
);

static PRIMITIVE: Shape = Shape::new(
    "StringSchema|NumberSchema|BooleanSchema|EnumSchema|UntitledSingleSelectEnumSchema|\
     TitledSingleSelectEnumSchema|UntitledMultiSelectEnumSchema|TitledMultiSelectEnumSchema|LegacyTitledEnumSchema",
    &[
        member("type"),
        member("title"),
        member("description"),
        member("minLength"),
        member("maxLength"),
        member("format"),
        member("minimum"),
        member("maximum"),
        member("default"),
        member("enum"),
        member("enumNames"),
        member("oneOf").since(D),
        member("items").since(D),
        member("minItems").since(D),
        member("maxItems").since(D),
    ],
);

// Parameters of notifications.

pub(crate) static CANCELLED_PARAMS: Shape =
    Shape::new("params", &[member("requestId"), member("reason"), member("_meta").object(&META)]);

pub(crate) static PROGRESS_PARAMS: Shape = Shape::new(
    "params",
    &[
        member("progressToken"),
        member("progress"),
        member("total"),
        member("message").since(B),
        member("_meta").object(&META),
    ],
);

pub(crate) static MESSAGE_PARAMS: Shape =
    Shape::new("params", &[member("level"), member("logger"), member("data"), member("_meta").object(&META)]);

pub(crate) static ELICITATION_COMPLETE_PARAMS: Shape =
    Shape::new("params", &[member("elicitationId"), member("_meta").object(&META)]);
