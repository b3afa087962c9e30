"""No module imports the front door of a package that it is in:
the front door imports that module, so this would be a circle.

The contract about circles compares the parts of a package with one another,
and the front door is not one of them.

Run by `nox -s imports`, which installs import-linter and with it grimp.
"""

import grimp


def imports_of_an_own_front_door(graph: grimp.ImportGraph) -> list[str]:
    """Each import of a package by a module inside it."""
    edges = [
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    ]
    return sorted(
        f"{module} imports {imported}"
        for module, imported in edges
        if module.startswith(f"{imported}.")
    )


def test_no_module_imports_its_own_front_door() -> None:
    """Both distributions are free of such imports, those under TYPE_CHECKING included."""
    assert (
        imports_of_an_own_front_door(grimp.build_graph("penstock", "penstock_tck", cache_dir=None))
        == []
    )


def test_an_import_of_an_own_front_door_is_found() -> None:
    """It is found at any depth; an import of a sibling or of another package's front door is
    permitted.
    """
    graph = grimp.ImportGraph()
    for importer, imported in [
        ("a.b._x", "a.b"),
        ("a.b.c._y", "a"),
        ("a.b._x", "a.b._z"),
        ("a.b._x", "a.d"),
        ("a.b", "a.b._x"),
        ("ab", "a"),
    ]:
        for module in (importer, imported):
            graph.add_module(module)
        graph.add_import(importer=importer, imported=imported)
    assert imports_of_an_own_front_door(graph) == ["a.b._x imports a.b", "a.b.c._y imports a"]
