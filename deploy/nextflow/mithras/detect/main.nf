process MITHRAS_DETECT {
    tag "$meta.id"
    label 'process_medium'

    // No public container yet: `mithras` is to be on the PATH of the task, in a container of your own, or in the environment.
    conda "${moduleDir}/environment.yml"

    input:
    tuple val(meta), path(slide)
    path model, stageAs: 'model/*'

    output:
    tuple val(meta), path("${prefix}/*/detections.csv"), emit: detections
    tuple val(meta), path("${prefix}/*/qupath.geojson"), emit: geojson
    tuple val(meta), path("${prefix}/*/counts.json")   , emit: counts
    tuple val(meta), path("${prefix}/counts.csv")      , emit: table
    tuple val(meta), path("${prefix}")                 , emit: run
    path "versions.yml"                                , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    def package_arg = model ? "--model ${model}" : ''
    def mpp_arg = meta.mpp ? "--mpp ${meta.mpp}" : ''
    """
    mithras \\
        detect \\
        ${slide} \\
        --out ${prefix} \\
        --threads ${task.cpus} \\
        --log json \\
        ${package_arg} \\
        ${mpp_arg} \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        mithras: \$(mithras --version | sed 's/^mithras //')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir -p ${prefix}/${slide.baseName}
    touch ${prefix}/counts.csv
    touch ${prefix}/${slide.baseName}/detections.csv
    touch ${prefix}/${slide.baseName}/qupath.geojson
    touch ${prefix}/${slide.baseName}/counts.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        mithras: \$(mithras --version | sed 's/^mithras //')
    END_VERSIONS
    """
}
