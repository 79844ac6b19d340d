"""A run's results for readers: sections of blocks, made once and drawn by each renderer.

`run.document` turns a summary into sections of blocks (`karat.blocks`), which the renderers in
`render` draw for a terminal, Markdown, a page and a notebook; `charts` are its drawings;
`templating.environment` is the only way to a template. All text from an agent, a tool, a dataset or
a run folder counts as hostile: it reaches a page only through `text.foreign` or
`markdown.markdown_html`.
"""
