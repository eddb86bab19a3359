// The text form for highlight.js, and the site's blocks of it, which scripts/docs.py marks as `text inv`: the language
// is not known yet when the page's other blocks are coloured.
(function () {
    if (!window.hljs) {
        return;
    }
    hljs.registerLanguage("inv", function () {
        const name = /("([^"\\]|\\.)*"|[A-Za-z_0-9][A-Za-z_0-9.]*)/.source;
        return {
            name: "Invar",
            keywords: {
                $pattern: /[a-z_][a-z_0-9]*/,
                keyword:
                    "kernel struct constant function_constant id if else for to step loop carry yield break continue " +
                    "return device threadgroup simdgroup imageblock thread texture read write read_write sample " +
                    "strict contract fast allow requires each of binding",
                literal: "true false inf nan",
                type:
                    "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 event sampler texture1d texture1d_array " +
                    "texture2d texture2d_array texture3d texturecube texturecube_array texture2d_ms " +
                    "texture2d_ms_array texture_buffer depth2d depth2d_array depthcube depthcube_array",
            },
            contains: [
                { className: "comment", begin: /;/, end: /$/ },
                { className: "variable", begin: "%" + name },
                { className: "title", begin: "@" + name },
                { className: "string", begin: /"/, end: /"/, contains: [{ begin: /\\./ }] },
                { className: "type", begin: /\b(bool|[iu](8|16|32|64)|b?f16|f32|f64)(x[2-4]){1,2}\b/ },
                { className: "type", begin: /\bsimdgroup_[a-z]+[0-9]+x8x8\b/ },
                { className: "number", begin: /-?\b(0x[0-9a-fA-F]+|[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)\b/ },
                // What a statement does: its first word, or the first behind `=`.
                { className: "built_in", begin: /(?<==\s)(?!const\b)[a-z_][a-z_0-9]*/ },
                { className: "built_in", begin: /\b(store|barrier|wait|copy|async_copy|alloc|const|atomic_[a-z_]+|texture_[a-z_]+|print)\b/ },
            ],
        };
    });
    for (const block of document.querySelectorAll("code.inv")) {
        block.className = "language-inv";
        hljs.highlightBlock(block);
        block.classList.add("hljs");
    }
})();
