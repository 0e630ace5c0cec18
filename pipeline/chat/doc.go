// Package chat turns messages into the text of a prompt with the model's own
// chat template, as transformers' apply_chat_template does, and splits a
// model's answer into reasoning and response.
//
// A [Template] comes from the files of a checkpoint ([Read]) or from one source
// ([Load]); [Template.Render] takes an [Input], whose messages and tools are JSON
// text, so that keys keep their order and numbers their digits. The templates
// themselves are run by package jinja.
//
// What reaches a template is transformers' (5.24), but for the first four rules,
// which are vLLM's: transformers leaves these to the caller, and templates then
// print "None" or quoted JSON, or fail.
//
//   - A content that is null or missing is empty text.
//   - The arguments of a tool call that are JSON text are that JSON; empty or null
//     ones are {}. Text that is not JSON is an error.
//   - An empty list of tool calls is as none.
//   - A name that is null is none.
//   - Other keys that are null are dropped, in messages, parts of a content and
//     tool calls: columnar files give every message every key. In a column of
//     structs so are those inside of arguments and tools ([Input.Sparse]), but for an
//     argument that the schema of the function that is called lets be null.
//   - Reasoning may be called reasoning_content, thinking or reasoning; a template
//     finds it as reasoning_content and as thinking.
//   - tools and documents are None where there are none. Messages, tools and tool
//     calls may be JSON text, each tool too.
//   - A final message is continued with [Input.Continue], up to its last text.
//   - [Input.Guard] marks tokens in what users wrote, so that they stay text
//     (transformers' sanitize_control_tokens).
package chat
