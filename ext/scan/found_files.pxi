# The found files of a scan, packed: only files that are looked at become objects of Python.
#
# Gives: nothing to other parts. For Python: FoundFiles, is_transcript_name.
# Needs: array_grow (array.pxi), tuple_new, tuple_set, tuple_require (named_tuple.pxi), os_next_name, os_facts_in
# and OsFacts (os/file.h).
#
# Python objects for 200,000 files took 45 MB, and more time than asking the system about the files.

cdef enum:
    SCAN_NAMES_AT_ONCE = 1024  # asked about in a row, between two looks for signals

# A found file.
cdef struct ScanFound:
    const char* path       # in UTF-8, with a NUL behind it
    int64_t size
    double modified        # Unix seconds

# A name in a folder.
cdef struct ScanName:
    char* name
    bint is_transcript
    int error              # errno, 0 for none
    OsFacts facts


cdef bint scan_is_transcript_name(const char* name, size_t size) noexcept nogil:
    """Return whether a name holds `.jsonl`, in letters of either case."""
    cdef const char* end = name + size
    cdef Literal ending = LIT(b"jsonl")
    while True:
        name = <const char*>memchr(name, c".", end - name)
        if name == NULL:
            return False
        name += 1
        if <size_t>(end - name) >= ending.size and strncasecmp(name, ending.text, ending.size) == 0:
            return True


cdef int scan_compare_listed(const void* one, const void* other) noexcept nogil:
    return strcmp((<const ScanName*>one).name, (<const ScanName*>other).name)


cdef int scan_compare_found(const void* one, const void* other) noexcept nogil:
    """Compare by path; of equal paths, the first added one is less."""
    cdef const char* path = (<const ScanFound*>one).path
    cdef const char* another = (<const ScanFound*>other).path
    cdef int order = strcmp(path, another)
    return order if order else (path > another) - (path < another)


@cython.final
cdef class ScanFolder:
    """A listed folder: the names that count."""
    cdef DIR* stream
    cdef ScanName* names
    cdef size_t count, room

    def __dealloc__(self):
        cdef size_t i
        if self.stream != NULL:
            closedir(self.stream)
        for i in range(self.count):
            PyMem_RawFree(self.names[i].name)
        PyMem_RawFree(self.names)

    cdef int read_names(self) noexcept nogil:
        """Read and sort the names of folders and transcripts. Returns 0 or errno."""
        cdef dirent* entry
        cdef ScanName* name
        cdef bint is_transcript
        cdef size_t size
        cdef int error
        while True:
            entry = os_next_name(self.stream, &error)
            if entry == NULL:
                break
            size = strlen(entry.d_name)
            is_transcript = scan_is_transcript_name(entry.d_name, size)
            if entry.d_type != DT_DIR and entry.d_type != DT_UNKNOWN and (not is_transcript or entry.d_type == DT_LNK):
                continue
            if strcmp(entry.d_name, b".") == 0 or strcmp(entry.d_name, b"..") == 0:
                continue
            if self.count == self.room and array_grow(
                <void**>&self.names, &self.room, self.count + 1, sizeof(ScanName)
            ) < 0:
                return ENOMEM
            name = &self.names[self.count]
            memset(name, 0, sizeof(ScanName))
            name.name = <char*>PyMem_RawMalloc(size + 1)
            if name.name == NULL:
                return ENOMEM
            self.count += 1
            memcpy(name.name, entry.d_name, size + 1)
            name.is_transcript = is_transcript
            name.facts.is_folder = entry.d_type == DT_DIR
        if self.count:
            qsort(self.names, self.count, sizeof(ScanName), scan_compare_listed)
        return error

    cdef void ask(self, size_t first, size_t stop) noexcept nogil:
        """Ask for the facts of a possible file."""
        cdef ScanName* name
        for i in range(first, stop):
            name = &self.names[i]
            if not name.facts.is_folder:
                name.error = os_facts_in(dirfd(self.stream), name.name, &name.facts)


@cython.final
cdef class FoundFiles:
    cdef type cls
    cdef char* paths
    cdef size_t paths_size, paths_room
    cdef ScanFound* files
    cdef size_t count, room

    def __cinit__(self, type cls not None):
        tuple_require(cls)
        self.cls = cls

    def __dealloc__(self):
        PyMem_RawFree(self.paths)
        PyMem_RawFree(self.files)

    def add(self, str path not None, int64_t size, double modified):
        cdef Py_ssize_t path_bytes
        cdef const char* text = PyUnicode_AsUTF8AndSize(path, &path_bytes)
        cdef size_t needed = self.paths_size + path_bytes + 1
        cdef size_t before = <size_t>self.paths
        cdef size_t i
        if self.count == self.room and array_grow(
            <void**>&self.files, &self.room, self.count + 1, sizeof(ScanFound)
        ) < 0:
            raise MemoryError
        if needed > self.paths_room:
            if array_grow(<void**>&self.paths, &self.paths_room, needed, 1) < 0:
                raise MemoryError
            for i in range(self.count):
                self.files[i].path = self.paths + (<size_t>self.files[i].path - before)
        self.files[self.count] = ScanFound(self.paths + self.paths_size, size, modified)
        memcpy(self.paths + self.paths_size, text, path_bytes + 1)
        self.paths_size = needed
        self.count += 1

    def add_folder(self, str folder not None, str first not None):
        cdef bytes place = PyUnicode_EncodeFSDefault(folder)
        cdef const char* folder_path = PyBytes_AS_STRING(place)
        cdef ScanFolder found = ScanFolder()
        cdef ScanName* name
        cdef list folders = []
        cdef list faults = []
        cdef size_t i
        cdef size_t asked = 0
        cdef int error = 0
        with nogil:
            found.stream = opendir(folder_path)
        if found.stream == NULL:
            PyErr_SetFromErrno(OSError)
        with nogil:
            error = found.read_names()
        if error:
            raise OSError(error, PyUnicode_DecodeFSDefault(strerror(error)))
        for i in range(found.count):
            if i == asked:
                asked = min(asked + SCAN_NAMES_AT_ONCE, found.count)
                PyErr_CheckSignals()
                with nogil:
                    found.ask(i, asked)
            name = &found.names[i]
            path = first + PyUnicode_DecodeFSDefault(name.name)
            if name.facts.is_folder:
                folders.append(path)
            elif name.error:
                if name.is_transcript or name.error != ENOENT:
                    faults.append((path, name.error))
            elif name.is_transcript and not name.facts.is_link:
                try:
                    if not name.facts.is_file:
                        faults.append((path, 0))
                    else:
                        self.add(path, name.facts.size, name.facts.modified)
                except UnicodeEncodeError:
                    faults.append((path, 0))
        return folders, faults

    def sort(self):
        cdef size_t i
        cdef size_t kept = 0
        if self.count == 0:
            return  # qsort takes no NULL
        qsort(self.files, self.count, sizeof(ScanFound), scan_compare_found)
        for i in range(self.count):
            if i + 1 == self.count or strcmp(self.files[i].path, self.files[i + 1].path):
                self.files[kept] = self.files[i]
                kept += 1
        self.count = kept

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t number):
        cdef ScanFound* file
        if not 0 <= number < <Py_ssize_t>self.count:
            raise IndexError(number)
        file = &self.files[number]
        found = tuple_new(self.cls, 6)
        tuple_set(found, 0, PyUnicode_FromString(file.path))
        tuple_set(found, 1, file.size)
        tuple_set(found, 2, file.modified)
        tuple_set(found, 3, None)
        tuple_set(found, 4, 0)
        tuple_set(found, 5, "")
        return found


# ---- for Python ---------------------------------------------------------------

def is_transcript_name(str name not None):
    cdef Py_ssize_t size
    cdef const char* text = PyUnicode_AsUTF8AndSize(name, &size)
    return scan_is_transcript_name(text, size)
