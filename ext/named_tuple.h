/* Instances of NamedTuple classes, made item by item. */

#ifndef TAILHOOK_NAMED_TUPLE_H
#define TAILHOOK_NAMED_TUPLE_H

#include <Python.h>
#include <string.h>

/* Return whether an instance of the class is a tuple and nothing more, so that it can be made item by item. */
static inline int
tailhook_is_named_tuple(PyTypeObject *cls)
{
    return PyType_IsSubtype(cls, &PyTuple_Type) && cls->tp_basicsize == PyTuple_Type.tp_basicsize &&
           cls->tp_dictoffset == 0 && cls->tp_weaklistoffset == 0;
}

/* Return an instance whose items are not set yet. The garbage collector does not track it: its items make no cycle.
   From Python 3.14 on a tuple stores its hash, and -1 means "not computed". */
static inline PyObject *
tailhook_new_named_tuple(PyTypeObject *cls, Py_ssize_t size)
{
    PyTupleObject *made = PyObject_GC_NewVar(PyTupleObject, cls, size);
    if (made != NULL) /* if an item cannot be allocated, the items not set yet must not be released */
        memset(made->ob_item, 0, (size_t)size * sizeof(PyObject *));
#if PY_VERSION_HEX >= 0x030E0000
    if (made != NULL)
        made->ob_hash = -1;
#endif
    return (PyObject *)made;
}

#endif
