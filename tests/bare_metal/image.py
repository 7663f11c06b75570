"""What is asked of every firmware image: that it has no allocator, and what it may have all the same."""

import re

from elf import readable

# In mangled names, old style and new, and in readable ones.
ALLOCATOR = re.compile(
    r"__(rust|rg|rdl)_(alloc|dealloc|realloc|no_alloc)|alloc(\d+|::)(alloc|raw_vec)|handle_alloc_error"
    r"|^(malloc|calloc|realloc|free|sbrk|_sbrk)$"
)


def allocators(names):
    """Those of the mangled names that are an allocator's."""
    both = zip(names, readable(names))
    return sorted(name for name, plain in both if ALLOCATOR.search(name) or ALLOCATOR.search(plain))


def patterns(path):
    """The regular expressions in a file, one a line; # begins a comment, the reason."""
    lines = (line.split("#")[0].strip() for line in open(path))
    return [re.compile(line) for line in lines if line]
