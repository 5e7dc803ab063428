// Imports the candidates of a mithras run into the images of the open project, by file name.
// QuPath 0.4 or later: open the project, Automate > Script editor, open this file, Run; or
// QuPath script --project project.qpproj import.groovy
import qupath.lib.io.PathIO

def folder = new File('@FOLDER@') // where the GeoJSON files lie: change it when they have moved
def stem = { it.replaceFirst(/\.[^.]*$/, '').replaceFirst(/(?i)(?<=.)\.ome$/, '').replaceAll(/[\p{Cntrl}\/\\:*?"<>|]/, '_').replaceAll(/^\.+|\.+$/, { '_' * it.size() }) }

def project = getProject()
if (project == null)
    throw new IllegalStateException('Open a project first')
int found = 0
for (entry in project.getImageList()) {
    // A slide's name that is taken in the run has an underscore behind it.
    def names = ['', '_'].collect { stem(entry.getImageName()) + it }
    def file = names.collect { new File(folder, it + '.geojson') }.find { it.exists() } ?: new File(folder, names[0] + '.geojson')
    if (!file.exists()) {
        println "no ${file.getName()} for ${entry.getImageName()}"
        continue
    }
    def data = entry.readImageData()
    def hierarchy = data.getHierarchy()
    def objects = PathIO.readObjects(file)
    // What an earlier import left is replaced, what was drawn by hand stays.
    def ids = objects.collect { it.getID() } as Set
    hierarchy.removeObjects(hierarchy.getAllObjects(false).findAll { ids.contains(it.getID()) }, true)
    hierarchy.addObjects(objects)
    entry.saveImageData(data)
    found++
    println "${entry.getImageName()}: ${objects.size()} objects"
}
println "${found} of ${project.getImageList().size()} images"
