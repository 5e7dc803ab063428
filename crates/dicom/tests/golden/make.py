"""Headers of a slide in DICOM, without pixels: two levels and a label of one series, with a person's data that is nobody's.

    python make.py      # writes case/*.dcm beside this file; needs pydicom
"""

from pathlib import Path

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, VLWholeSlideMicroscopyImageStorage

HERE = Path(__file__).parent / "case"
ROOT = "1.2.826.0.1.3680043.8.498."


def write(name: str, instance: int, size: tuple[int, int], flavor: str) -> None:
    d = Dataset()
    d.SpecificCharacterSet = "ISO_IR 100"
    d.ImageType = ["ORIGINAL", "PRIMARY", flavor, "NONE"]
    d.SOPClassUID = VLWholeSlideMicroscopyImageStorage
    d.SOPInstanceUID = f"{ROOT}3.{instance}"
    d.StudyInstanceUID, d.SeriesInstanceUID, d.FrameOfReferenceUID = ROOT + "1", ROOT + "2", ROOT + "4"
    d.StudyDate, d.StudyTime, d.StudyID, d.AccessionNumber = "20200102", "030405", "S7", "A-99"
    d.ReferringPhysicianName, d.PatientName, d.PatientID = "Beispiel^Ärztin", "Müller^Jane", "P-17"
    d.PatientBirthDate, d.PatientSex = "19500607", "F"
    d.Modality, d.SeriesNumber, d.InstanceNumber = "SM", 1, instance
    d.TotalPixelMatrixColumns, d.TotalPixelMatrixRows = size
    d.Rows = d.Columns = 256
    d.file_meta = FileMetaDataset()
    d.file_meta.MediaStorageSOPClassUID, d.file_meta.MediaStorageSOPInstanceUID = d.SOPClassUID, d.SOPInstanceUID
    d.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    d.save_as(HERE / name, enforce_file_format=True)


HERE.mkdir(exist_ok=True)
write("a-label.dcm", 3, (20000, 10000), "LABEL")
write("b-level1.dcm", 2, (5000, 2500), "VOLUME")
write("c-level0.dcm", 1, (20000, 10000), "VOLUME")
