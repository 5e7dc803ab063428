// Writes the objects of every image of the open project for
//     mithras recount RUN --reviews FOLDER
// QuPath 0.4 or later: open the project, Automate > Script editor, open this file, Run; or
// QuPath script --project project.qpproj export.groovy
import qupath.lib.io.PathIO

def folder = new File('@FOLDER@') // where the GeoJSON files go
def stem = { it.replaceFirst(/\.[^.]*$/, '').replaceFirst(/(?i)(?<=.)\.ome$/, '').replaceAll(/[\p{Cntrl}\/\\:*?"<>|]/, '_').replaceAll(/^\.+|\.+$/, { '_' * it.size() }) }

def project = getProject()
if (project == null)
    throw new IllegalStateException('Open a project first')
folder.mkdirs()
for (entry in project.getImageList()) {
    if (!entry.hasImageData())
        continue // never opened, so nothing was imported into it
    def objects = entry.readHierarchy().getAllObjects(false).findAll { it.isDetection() || it.isAnnotation() }
    // As the imported file is called: a slide's name that is taken in the run has an underscore behind it.
    def names = ['', '_'].collect { stem(entry.getImageName()) + it }
    def file = new File(folder, (names.find { new File(folder.parentFile, it + '.geojson').exists() } ?: names[0]) + '.geojson')
    PathIO.exportObjectsAsGeoJSON(file, objects, PathIO.GeoJsonExportOptions.FEATURE_COLLECTION)
    println "${file}: ${objects.size()} objects"
}
