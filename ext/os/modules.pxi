# Finds and loads the hook's own modules without a search.
#
# Gives: nothing to other parts. For Python: ModuleFinder, preload.
# Needs: nothing.
#
# Python's own finder lists folders, tries endings and opens files through three layers of streams: two fifths of the
# 2 ms that a cold hook would spend on its modules (2026-11-28). Here the code comes straight from Python's .pyc file,
# if the source still has the time and size in that file. Everything else is left to Python's finder.

cdef bint os_is_cold_hook() except -1:
    """Return whether this process was started to run the hook's entry file."""
    cdef PyObject* argv = PySys_GetObject("argv")
    if argv is NULL or not (<object>argv):
        return False
    return str((<object>argv)[0]).endswith("/tailhook/hook/entry.py")


# The objects of this module alone would start a garbage collection, which takes one to two hundred thousand
# instructions. It would find next to nothing, because a hook's process ends early.
if os_is_cold_hook():
    PyGC_Disable()


cdef enum:
    OS_PYC_HEADER_BYTES = 16  # PEP 552: magic number, flags, the source's time and size
    OS_MAX_PYC_BYTES = 1 << 16  # the hook's modules are far smaller


cdef inline uint32_t os_pyc_word(const uint8_t* header, int index) noexcept nogil:
    """Return a little-endian word of a .pyc file's header."""
    header += 4 * index
    return header[0] | header[1] << 8 | header[2] << 16 | <uint32_t>header[3] << 24


cdef object os_module_code(bytes source, bytes compiled):
    """Return the code object in `compiled`, or None if it was not made from the current source."""
    cdef uint8_t data[OS_MAX_PYC_BYTES]
    cdef Py_ssize_t size
    cdef struct_stat facts
    cdef int fd = os_open(compiled, O_RDONLY | O_CLOEXEC)
    if fd < 0:
        return None
    size = read(fd, data, OS_MAX_PYC_BYTES)
    close(fd)
    if size < OS_PYC_HEADER_BYTES or size == OS_MAX_PYC_BYTES or stat(source, &facts):
        return None
    if (
        os_pyc_word(data, 0) != <uint32_t>PyImport_GetMagicNumber()
        or os_pyc_word(data, 1)
        or os_pyc_word(data, 2) != <uint32_t>facts.st_mtime
        or os_pyc_word(data, 3) != <uint32_t>facts.st_size
    ):
        return None
    return PyMarshal_ReadObjectFromString(<const char*>data + OS_PYC_HEADER_BYTES, size - OS_PYC_HEADER_BYTES)


cdef object os_load_module(spec):
    """Return the new module of a finder's spec, after its code ran."""
    cdef dict modules = <dict>PyImport_GetModuleDict()
    cdef str name = spec.name
    module = PyModule_NewObject(name)
    cdef dict attributes = module.__dict__
    attributes["__spec__"] = spec
    attributes["__loader__"] = spec.loader
    attributes["__file__"] = spec.origin
    attributes["__cached__"] = spec.cached
    attributes["__package__"] = name.rpartition(".")[0]
    if spec.submodule_search_locations is not None:
        attributes["__package__"] = name
        attributes["__path__"] = spec.submodule_search_locations
    modules[name] = module
    spec._initializing = False  # as importlib leaves it; without it, each import of the module makes an AttributeError
    try:
        exec(spec.loader_state, attributes)
    except BaseException:
        del modules[name]
        raise
    return module


cdef class ModuleFinder:
    cdef object make_spec
    cdef str ending

    def __init__(self):
        from _frozen_importlib import ModuleSpec
        self.make_spec = ModuleSpec
        self.ending = f".{PyImport_GetMagicTag().decode()}.pyc"

    def find_spec(self, str name not None, path=None, target=None):
        cdef str folder, leaf
        if not path or not name.startswith("tailhook."):
            return None
        folder, leaf = path[0], name.rpartition(".")[2]
        package = f"{folder}/{leaf}"
        return self.spec(name, folder, leaf, None) or self.spec(name, package, "__init__", package)

    cdef object spec(self, str name, str folder, str leaf, str package):
        cdef str source = f"{folder}/{leaf}.py"
        cdef str compiled = f"{folder}/__pycache__/{leaf}{self.ending}"
        code = os_module_code(source.encode("utf-8", "surrogateescape"), compiled.encode("utf-8", "surrogateescape"))
        if code is None:
            return None
        spec = self.make_spec(name, self, origin=source, loader_state=code, is_package=package is not None)
        spec.has_location = True
        spec.cached = compiled
        if package is not None:
            spec.submodule_search_locations = [package]
        return spec

    def start_hook(self, str entry not None, str names not None):
        """Begin a hook's process, which has only this core: put this finder first, and load the first modules.

        entry: the path of the package's hook/entry.py.
        names: as for `preload`, in one string.
        """
        import sys
        folder = entry[: -len("/hook/entry.py")]
        sys.path.insert(0, folder[: -len("/tailhook")])
        sys.meta_path.insert(0, self)
        spec = self.spec("tailhook", folder, "__init__", folder)
        if spec is None:
            import tailhook
        else:
            os_load_module(spec)
        sys.modules["tailhook"]._core = sys.modules["tailhook._core"]
        self.preload(*names.split())

    def preload(self, *names):
        """Load modules before they are imported. A module that others import comes first.

        An `import` statement then finds them in sys.modules and does not run importlib, which takes over 100,000
        instructions for a module. A module whose bytecode is missing or outdated is left to its `import` statement.

        names: below the package, as "hook.answer"; a package before its modules. Loaded ones are skipped.
        """
        cdef dict modules = <dict>PyImport_GetModuleDict()
        for name in names:
            name = f"tailhook.{name}"
            if name not in modules and not self.load(name, modules):
                return

    cdef bint load(self, str name, dict modules) except -1:
        parent, _, leaf = name.rpartition(".")
        package = modules[parent]
        spec = self.find_spec(name, package.__path__)
        if spec is None:
            return False
        setattr(package, leaf, os_load_module(spec))
        return True

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(module.__spec__.loader_state, module.__dict__)


def preload(*names):
    import sys
    finder = sys.meta_path[0]
    if isinstance(finder, ModuleFinder):
        (<ModuleFinder>finder).preload(*names)
